package wire

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

// ReceiptKeysPath is where a server has the public keys of its receipts, for everybody.
const ReceiptKeysPath = "/receipts/key.pem"

// ReceiptEntry is a receipt of a task, in a list.
type ReceiptEntry struct {
	ID         string    `json:"id"`
	Commit     string    `json:"commit" doc:"That was published"`
	Generation int64     `json:"generation" doc:"The run that published it"`
	Key        string    `json:"key" doc:"The id of the key that signed it"`
	CreatedAt  time.Time `json:"created_at"`
}

// Receipts are the receipts of a task, oldest first.
type Receipts struct {
	Receipts []ReceiptEntry `json:"receipts"`
}

// Receipt asks for a receipt: a DSSE envelope.
func (c *Client) Receipt(ctx context.Context, id string) ([]byte, error) {
	var envelope json.RawMessage
	err := c.get(ctx, "/v1/receipts/"+url.PathEscape(id), &envelope)
	return envelope, err
}

// ReceiptsOf lists the receipts of a task.
func (c *Client) ReceiptsOf(ctx context.Context, id task.ID) (Receipts, error) {
	var receipts Receipts
	err := c.get(ctx, "/v1/tasks/"+url.PathEscape(string(id))+"/receipts", &receipts)
	return receipts, err
}
