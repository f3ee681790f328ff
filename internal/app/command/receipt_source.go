package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/toryo-dev/toryo/internal/app/cli"
	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/app/site"
	"github.com/toryo-dev/toryo/internal/receipt"
	"github.com/toryo-dev/toryo/internal/store"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/wire"
)

// fetchTimeout is how long a receipt or a key may take to arrive.
const fetchTimeout = time.Minute

// receiptSource is where receipts and their keys are read from.
type receiptSource struct {
	*onReceipt
	config config.Config
	http   *http.Client
}

// receiptSource reads the configuration. That of the machine is not needed for a receipt in a file,
// with keys that are named.
func (o *onReceipt) receiptSource(name string, keys bool) (*receiptSource, error) {
	load := o.settings.LoadData
	if _, err := os.Stat(name); o.server != "" || err == nil && keys {
		load = o.settings.LoadRemote
	}
	loaded, err := load(o.Program)
	if err != nil {
		return nil, err
	}
	connection, err := site.AgentClient(loaded.Agent.CAFile)
	return &receiptSource{o, loaded, connection}, err
}

// receipt reads the receipt that somebody names.
func (r *receiptSource) receipt(ctx context.Context, name string) ([]byte, error) {
	if address, is := webAddress(name); is {
		return r.linked(ctx, address)
	}
	text, err := readFile(name)
	if _, wrong := uuid.Parse(name); errors.Is(err, fs.ErrNotExist) && wrong == nil {
		return r.byID(ctx, r.server, name)
	}
	if err != nil {
		return nil, task.Wrap(task.Usage, err, "the receipt cannot be read").WithHint("give a file, an address that begins with https://, or the id of a receipt")
	}
	return text, nil
}

// webAddress reads what looks like an address.
func webAddress(name string) (*url.URL, bool) {
	address, err := url.Parse(name)
	return address, err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != ""
}

// linked reads a receipt from an address. The token is sent to the server that --server names, never
// to one that only the address names: anybody can write a link. If the address is that of the server of
// this machine, the receipt is in its database.
func (r *receiptSource) linked(ctx context.Context, address *url.URL) ([]byte, error) {
	id := path.Base(address.Path)
	if folder := path.Dir(address.Path); folder != "/receipts" && folder != "/v1/receipts" {
		return r.fetch(ctx, address.String(), receipt.MaxEnvelope)
	}
	origin := address.Scheme + "://" + address.Host
	switch {
	case r.server != "" && sameOrigin(r.server, origin):
		return r.byID(ctx, r.server, id)
	case r.server == "" && r.isOwn(origin):
		return r.byID(ctx, "", id)
	}
	return nil, task.Errorf(task.Usage, "%s is not the server that you use", origin).
		WithHint("if you trust it with your token, give --server %s; or save the receipt to a file", origin)
}

// isOwn reports whether an address is that of the server of this machine, which need not run.
func (r *receiptSource) isOwn(origin string) bool {
	addresses := []string{r.config.Server.PublicURL, site.ListeningURL(r.config, r.config.Server.Addr)}
	if running, err := site.RunningServer(r.config.DataDir); err == nil {
		addresses = append(addresses, running.URL)
	}
	return slices.ContainsFunc(addresses, func(address string) bool { return sameOrigin(address, origin) })
}

func sameOrigin(server, origin string) bool {
	address, is := webAddress(server)
	return is && strings.EqualFold(address.Scheme+"://"+address.Host, origin)
}

// byID asks a server, or the database if none is named.
func (r *receiptSource) byID(ctx context.Context, server, id string) ([]byte, error) {
	if server != "" {
		token := r.Variable(tokenVariable)
		if token == "" {
			return nil, task.Errorf(task.Usage, "%s wants a token, and none was given", server).
				WithHint("set %s to one; where the server is, toryo token create --role viewer makes it", tokenVariable)
		}
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		client := &wire.Client{Server: server, Token: token, HTTP: r.http}
		return client.Receipt(ctx, id)
	}
	var envelope []byte
	err := cli.WithStore(ctx, r.Program, &r.settings, func(database store.Store) error {
		found, err := database.Receipt(ctx, id)
		envelope = found.Envelope
		return err
	})
	return envelope, err
}

// keys reads the keys to check with, and says where they are from.
func (r *receiptSource) keys(ctx context.Context, named string) (text []byte, from string, err error) {
	const maxKeys = 1 << 20
	if address, is := webAddress(named); is {
		text, err = r.fetch(ctx, address.String(), maxKeys)
		return text, address.String(), err
	}
	if named != "" {
		text, err = readFile(named)
		if err != nil {
			err = task.Wrap(task.Usage, err, "the keys cannot be read").WithHint("give a file or an address with --key")
		}
		return text, named, err
	}
	if r.server != "" {
		from = strings.TrimSuffix(r.server, "/") + wire.ReceiptKeysPath
		text, err = r.fetch(ctx, from, maxKeys)
		return text, from, err
	}
	err = cli.WithStore(ctx, r.Program, &r.settings, func(database store.Store) (err error) {
		text, err = receiptKeysIn(ctx, database)
		return err
	})
	if task.CodeOf(err) == task.DataDir {
		err = task.Wrap(task.DataDir, err, "there are no keys to check the receipt with").WithHint("name a file or an address that has them with --key")
	}
	return text, "the database of this machine", err
}

// fetch reads an address without a token, up to a limit.
func (r *receiptSource) fetch(ctx context.Context, address string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, task.Wrap(task.Usage, err, "the address is not valid").WithHint("give it with its scheme, such as https://toryo.example.com/receipts/0199…")
	}
	answer, err := r.http.Do(request)
	if err != nil {
		return nil, task.Wrap(task.Unavailable, err, "the address cannot be read").WithHint("check it, and whether this machine reaches it; or save the receipt to a file and name that")
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, task.Errorf(task.Unavailable, "%s answers %s", address, answer.Status).WithHint("check the address")
	}
	return limitedRead(answer.Body, most)
}

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return limitedRead(file, receipt.MaxEnvelope)
}

// limitedRead reads all there is, unless it is more than the limit.
func limitedRead(from io.Reader, most int64) ([]byte, error) {
	var text bytes.Buffer
	if _, err := text.ReadFrom(io.LimitReader(from, most+1)); err != nil {
		return nil, task.Wrap(task.Unavailable, err, "what was read was cut off").WithHint("try again")
	}
	if int64(text.Len()) > most {
		return nil, task.Errorf(task.TooLarge, "what was named is larger than %d bytes, which a receipt and its keys never are", most).WithHint("check the name")
	}
	return text.Bytes(), nil
}
