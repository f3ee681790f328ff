package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/review"
	"github.com/toryo-dev/toryo/internal/review/judge"
	"github.com/toryo-dev/toryo/internal/store"
)

const (
	chatSections = 1000
	chatTurns    = 200
	tokenTurns   = 30
)

// measureReviews looks at what the chat about a review costs: the time to put its
// context together, and what it sends beside a chat that sends everything each time.
func measureReviews(context.Context, string) ([]row, error) {
	first, took, err := timeContext()
	if err != nil {
		return nil, err
	}
	sent, everything, err := sendChat()
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("review chat: context put together, %d sections, %d turns, median", chatSections, chatTurns),
			took.Round(time.Microsecond).String(), "under 2 ms"},
		{fmt.Sprintf("review chat: review taken apart before its first turn, %d sections with an item each, median", chatSections),
			first.Round(time.Microsecond).String(), ""},
		{fmt.Sprintf("review chat: input of %d turns (bytes, which stand for tokens) as a share of sending everything each time", tokenTurns),
			fmt.Sprintf("%.1f %% (%d kB of %d kB)", 100*float64(sent)/float64(everything), sent/1000, everything/1000), "under 40 %"},
	}, nil
}

// paragraph is a section of an answer of usual length.
func paragraph(number int) string {
	return strings.Repeat(fmt.Sprintf("第%d段落では、契約の成立と効力について述べる。", number), 4)
}

// exam is a review of an answer with that many sections.
func exam(sections int) (answer string, judgement json.RawMessage, err error) {
	var parts []judge.Section
	var items []map[string]any
	for n := 1; n <= sections; n++ {
		parts = append(parts, judge.Section{Number: n, Text: paragraph(n)})
		items = append(items, map[string]any{"text": "根拠条文の指摘が必要である。", "paragraph_numbers": []int{n}})
	}
	judgement, err = json.Marshal(map[string]any{
		"overall_review": strings.Repeat("全体としてよく書けているが、あてはめが不足している。", 10),
		"strengths":      items[:len(items)/2], "weaknesses": items[len(items)/2:],
	})
	return judge.Mark(parts), judgement, err
}

func conversationOf(turns int) []store.Message {
	var said []store.Message
	for turn := 1; turn <= turns; turn++ {
		said = append(said,
			store.Message{Turn: turn, Role: store.UserMessage, State: store.Answered, Content: fmt.Sprintf("%d回目の質問です。なぜ減点されたのですか。", turn)},
			store.Message{Turn: turn, Role: store.AssistantMessage, State: store.Answered, Content: strings.Repeat("あてはめの事実が足りないからです。", 20)})
	}
	return said
}

// timeContext is the median time to take a review apart, which is done once, and to
// put together what is sent.
func timeContext() (first, each time.Duration, err error) {
	answer, judgement, err := exam(chatSections)
	if err != nil {
		return 0, 0, err
	}
	thread := store.Thread{Language: "ja"}
	history := conversationOf(chatTurns)
	const runs = 51
	apart, together := make([]time.Duration, runs), make([]time.Duration, runs)
	for i := range runs {
		begun := time.Now()
		parsed, err := judge.ParseJudgement(judgement)
		if err != nil {
			return 0, 0, err
		}
		material := review.Material{Question: "契約の成立を論ぜよ。", Judgement: parsed, Sections: judge.ParseSections(answer)}
		apart[i] = time.Since(begun)
		begun = time.Now()
		composed, err := review.Compose(nil, material, thread, history, "§3と§500と§999は")
		if err != nil {
			return 0, 0, err
		}
		together[i] = time.Since(begun)
		if composed.Turn != chatTurns+1 || len(composed.Numbers) != 3 {
			return 0, 0, fmt.Errorf("the context is of turn %d and sections %v", composed.Turn, composed.Numbers)
		}
	}
	slices.Sort(apart)
	slices.Sort(together)
	return apart[runs/2], together[runs/2], nil
}

// sendChat is what a conversation sends in all, and what one would that sends the
// question with all its texts, the whole answer, the whole review and the whole
// history each time. Every third message names a section.
func sendChat() (sent, everything int, err error) {
	answer, judgement, err := exam(100)
	if err != nil {
		return 0, 0, err
	}
	parsed, err := judge.ParseJudgement(judgement)
	if err != nil {
		return 0, 0, err
	}
	material := review.Material{
		Question: strings.Repeat("次の事案における法律関係を論ぜよ。", 40), Purpose: strings.Repeat("本問の趣旨は次のとおりである。", 60),
		Grading: strings.Repeat("多くの答案は次の点を欠いていた。", 60), Judgement: parsed, Sections: judge.ParseSections(answer),
	}
	thread := store.Thread{Language: "ja"}
	for turn := 1; turn <= tokenTurns; turn++ {
		history := conversationOf(turn - 1)
		input := fmt.Sprintf("%d回目の質問です。なぜ減点されたのですか。", turn)
		if turn%3 == 0 {
			input = fmt.Sprintf("§%dは%s", turn, input)
		}
		composed, err := review.Compose(nil, material, thread, history, input)
		if err != nil {
			return 0, 0, err
		}
		thread.LastSectionMentionTurn, thread.LastSectionParagraphNumbers = composed.MentionTurn, composed.Mentioned
		sent += composed.Request.Size()
		everything += len(composed.Request.System) + len(material.Question) + len(material.Purpose) + len(material.Grading) + len(answer) + len(judgement) + len(input)
		for _, message := range history {
			everything += len(message.Content)
		}
		if turn%5 == 0 { // a summary of the usual length, whose making is paid for too
			summary := fmt.Sprintf("【%d～%dターンの要約】\n%s", turn-4, turn, strings.Repeat("減点の理由を尋ね、あてはめの不足と答えた。", 8))
			for _, message := range conversationOf(5) {
				sent += len(message.Content)
			}
			thread.ConversationSummary += "\n\n" + summary
			thread.SummaryUpToTurn = turn
		}
	}
	return sent, everything, nil
}
