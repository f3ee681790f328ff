package format

import (
	"encoding/base64"
	"strings"

	"github.com/toryo-dev/toryo/internal/task"
)

// signedPrefix begins secrets that are written in base64, as Standard Webhooks has it.
const signedPrefix = "whsec_"

// SigningKey is the key that a secret stands for: its bytes, or what is behind the prefix in
// base64. The error repeats nothing of the secret.
func SigningKey(secret string) ([]byte, error) {
	encoded, found := strings.CutPrefix(secret, signedPrefix)
	if !found {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, task.Errorf(task.Invalid, "the secret begins with %s and is not base64 behind that", signedPrefix).
			WithHint("copy the whole secret again, or use one that does not begin with %s", signedPrefix)
	}
	return key, nil
}
