package script

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
)

// What a model thought has a signature, by which a vendor knows that it comes back as it
// was: of the conversation before it, and of its text. Some vendors check only the text.

// sign signs what is thought in an answer, and its calls.
func (a *played) sign(request llm.Request) {
	before := sumOf(digestOf(request))
	for i := range a.parts {
		switch part := &a.parts[i]; {
		case part.Thinking != nil:
			part.Thinking.Data = []byte(before + "." + sumOf(sha256.New(), part.Thinking.Text))
		case part.Call != nil:
			part.Call.Signature = callSignature(*part.Call)
		}
	}
}

func callSignature(call llm.Call) []byte { return []byte("signed " + call.Name) }

// verify checks the signatures in a request. Bound says that the conversation before a
// thought must be the same as when it was made.
func verify(request llm.Request, bound bool) error {
	before := digestOf(llm.Request{System: request.System, Tools: request.Tools})
	for i, message := range request.Messages {
		prefix := sumOf(before)
		for j, part := range message.Parts {
			if part.Thinking == nil || part.Thinking.Data == nil {
				continue
			}
			made, text, _ := strings.Cut(string(part.Thinking.Data), ".")
			if text != sumOf(sha256.New(), part.Thinking.Text) {
				return fmt.Errorf("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
			}
			if bound && made != prefix {
				return fmt.Errorf("messages.%d.content.%d: Invalid `signature` in `thinking` block. The block is bound to a different conversation", i, j)
			}
		}
		add(before, message)
	}
	return nil
}

// noSignature is what Gemini takes for the signature of a call of another model.
const noSignature = "skip_thought_signature_validator"

// verifyCalls checks that the first of several calls has a signature, and that all are
// right.
func verifyCalls(request llm.Request) error {
	skipped, err := base64.URLEncoding.DecodeString(noSignature)
	if err != nil {
		return err
	}
	for i, message := range request.Messages {
		for j, call := range message.Calls() {
			switch signature := string(call.Signature); {
			case signature == "" && j > 0, signature == string(callSignature(call)), signature == string(skipped) && j == 0:
			case signature == "":
				return fmt.Errorf("contents[%d]: function call is missing a thought_signature", i)
			default:
				return errors.New("thought signature is not valid")
			}
		}
	}
	return nil
}

func digestOf(request llm.Request) hash.Hash {
	digest := sha256.New()
	add(digest, request.System)
	add(digest, request.Tools)
	for _, message := range request.Messages {
		add(digest, message)
	}
	return digest
}

func add(digest hash.Hash, part any) {
	if data, err := json.Marshal(part); err == nil {
		digest.Write(append(data, '\n'))
	}
}

func sumOf(digest hash.Hash, texts ...string) string {
	for _, text := range texts {
		digest.Write([]byte(text))
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}
