package llm

import (
	"fmt"
	"math"
	"strings"
)

// Money is an amount in millionths of the configured currency.
type Money int64

// Unit is one whole unit of the currency.
const Unit Money = 1_000_000

// String is the amount with as many decimals as it needs, two at least.
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", m%Unit), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s%d.%s", sign, m/Unit, fraction)
}

// MoneyOf turns a number of whole units, as a configuration has it, into an
// amount, rounded to the nearest millionth.
func MoneyOf(units float64) Money { return Money(math.Round(units * float64(Unit))) }

// Usage is what a call used, in tokens. Input is all of the input; Cached and
// CacheWrite are the parts of it that were read from and written to the
// provider's cache. Output is all of the output; Reasoning is the part of it that was
// thought and not said, as far as the provider tells it.
type Usage struct {
	Input      int64 `json:"input"`
	Cached     int64 `json:"cached,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

// Total is input and output together.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Add returns the sum of both.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		Input:      u.Input + other.Input,
		Cached:     u.Cached + other.Cached,
		CacheWrite: u.CacheWrite + other.CacheWrite,
		Output:     u.Output + other.Output,
		Reasoning:  u.Reasoning + other.Reasoning,
	}
}

// Prices is what a million tokens cost. A price that is not known is zero; cached
// input without a price of its own costs as much as other input.
type Prices struct {
	Input      Money
	Cached     Money
	CacheWrite Money
	Output     Money
	Long       LongPrices
}

// LongPrices are the prices of a request whose input has more tokens than Over. Over is 0
// when every request has the same prices.
type LongPrices struct {
	Over       int64
	Input      Money
	Cached     Money
	CacheWrite Money
	Output     Money
}

const priceTokens = 1_000_000

// of are the prices of a request with so many tokens of input.
func (p Prices) of(input int64) Prices {
	if long := p.Long; long.Over > 0 && input > long.Over {
		return Prices{Input: long.Input, Cached: long.Cached, CacheWrite: long.CacheWrite, Output: long.Output}
	}
	return p
}

// Cost is what the usage of one request costs, rounded up.
func (p Prices) Cost(usage Usage) Money {
	p = p.of(usage.Input)
	fresh := max(0, usage.Input-usage.Cached-usage.CacheWrite)
	total := fresh*int64(p.Input) +
		usage.Cached*int64(orElse(p.Cached, p.Input)) +
		usage.CacheWrite*int64(orElse(p.CacheWrite, p.Input)) +
		usage.Output*int64(p.Output)
	return Money((total + priceTokens - 1) / priceTokens)
}

// most is the highest price that a token of input can have.
func (p Prices) most(input, output int64) Money {
	p = p.of(input)
	price := max(p.Input, p.Cached, p.CacheWrite)
	return Prices{Input: price, Output: p.Output}.Cost(Usage{Input: input, Output: output})
}

func orElse(price, fallback Money) Money {
	if price == 0 {
		return fallback
	}
	return price
}
