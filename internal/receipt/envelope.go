package receipt

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/toryo-dev/toryo/internal/task"
)

// MaxEnvelope is how many bytes an envelope may have: a verdict in base64, with the
// commands a second time.
const MaxEnvelope = 2 << 20

// RefusedError says why a receipt does not prove anything, and what to do.
type RefusedError struct{ Reason, Advice string }

// Error gives both in one line.
func (e *RefusedError) Error() string {
	return "the receipt is not valid: " + e.Reason + "; " + e.Advice
}

func refused(reason, advice string) error { return &RefusedError{reason, advice} }

// quoted is a text of the receipt for a message.
func quoted(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.QuoteToASCII(text)
}

// Sign makes the envelope of a statement.
func Sign(ctx context.Context, key PrivateKey, statement Statement) ([]byte, error) {
	payload, err := json.Marshal(statement)
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the receipt cannot be written down")
	}
	signer, err := dsse.NewEnvelopeSigner(key)
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the receipt cannot be signed")
	}
	envelope, err := signer.SignPayload(ctx, PayloadType, payload)
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the receipt cannot be signed")
	}
	data, err := json.Marshal(envelope)
	if err != nil {
		return nil, task.Wrap(task.Internal, err, "the receipt cannot be written down")
	}
	if len(data) > MaxEnvelope {
		return nil, task.Errorf(task.TooLarge, "the receipt has %d bytes; %d are the limit", len(data), MaxEnvelope)
	}
	return data, nil
}

// Verified is a receipt whose signature is good.
type Verified struct {
	Statement Statement
	Key       string // id of the key that signed it
}

// Verify checks an envelope against keys, of which one has to have signed it. A receipt
// that does not pass is a [RefusedError].
func Verify(ctx context.Context, data []byte, keys ...PublicKey) (Verified, error) {
	envelope, err := open(data)
	if err != nil {
		return Verified{}, err
	}
	verifiers := make([]dsse.Verifier, 0, len(keys))
	for _, key := range keys {
		verifiers = append(verifiers, key)
	}
	verifier, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return Verified{}, task.Wrap(task.Usage, err, "there is no key to check with")
	}
	accepted, payload, err := verifier.VerifyAndDecode(ctx, envelope)
	if err != nil || len(accepted) == 0 {
		return Verified{}, unsigned(envelope, keys)
	}
	statement, err := parse(payload)
	if err != nil {
		return Verified{}, err
	}
	return Verified{Statement: statement, Key: accepted[0].KeyID}, nil
}

// Read returns what an envelope says without checking who signed it.
func Read(data []byte) (Statement, error) {
	envelope, err := open(data)
	if err != nil {
		return Statement{}, err
	}
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		return Statement{}, refused("its payload is not base64", "get it again from the server that made it")
	}
	return parse(payload)
}

// open reads the outside of an envelope.
func open(data []byte) (*dsse.Envelope, error) {
	if len(data) > MaxEnvelope {
		return nil, refused("it is larger than a receipt can be", "get it again from the server that made it")
	}
	var envelope dsse.Envelope
	if json.Unmarshal(data, &envelope) != nil || envelope.PayloadType == "" {
		return nil, refused("it is not a DSSE envelope", "give the file as the server sends it, or the address of the receipt")
	}
	if envelope.PayloadType != PayloadType {
		return nil, refused("its payload is of the type "+quoted(envelope.PayloadType), "a receipt has the type "+PayloadType)
	}
	return &envelope, nil
}

// unsigned says why no key accepts an envelope.
func unsigned(envelope *dsse.Envelope, keys []PublicKey) error {
	if len(envelope.Signatures) == 0 {
		return refused("it has no signature", "get it again from the server that made it")
	}
	for _, signature := range envelope.Signatures {
		if signature.KeyID == "" || slices.ContainsFunc(keys, func(key PublicKey) bool { return key.id == signature.KeyID }) {
			return refused("the signature does not fit what is signed: one of them was changed",
				"do not rely on it; get it again from the server that made it")
		}
	}
	return refused("it is signed with the key "+quoted(envelope.Signatures[0].KeyID)+", which is not among those given",
		"get the key of the server that made it, from its /receipts/key.pem, and give it with --key")
}
