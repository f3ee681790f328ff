package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/toryo-dev/toryo/internal/lifecycle"
	"github.com/toryo-dev/toryo/internal/task"
)

// What a new password costs to check: 19 MiB and two passes, the smallest that
// OWASP recommends for argon2id. It is kept with each hash, so that it can be
// raised without anyone losing a password.
const (
	hashMemory  = 19 << 10 // KiB
	hashPasses  = 2
	hashThreads = 1
	hashBytes   = 32
	saltBytes   = 16
)

const (
	minPassword = 10
	maxPassword = 1000
)

// Passwords are checked one at a time, and few wait for it: that bounds the memory
// that strangers can make the server use. Checking one takes some 50 ms.
var (
	checking = lifecycle.NewMutex()
	waiting  = make(chan struct{}, 64)
)

// HashPassword makes what is stored of a password. It refuses passwords that are
// too short to be worth anything.
func HashPassword(ctx context.Context, password string) (string, error) {
	if length := utf8.RuneCountInString(password); length < minPassword || length > maxPassword {
		return "", task.Errorf(task.Invalid, "a password has %d to %d characters", minPassword, maxPassword)
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails: it ends the program instead
	sum, err := derive(ctx, password, salt, hashMemory, hashPasses, hashThreads)
	if err != nil {
		return "", err
	}
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashThreads, encode(salt), encode(sum)), nil
}

// checkPassword reports whether the password is the one of the hash. An empty
// hash has no password, and costs as much to find out.
func checkPassword(ctx context.Context, hash, password string) (bool, error) {
	if len(password) > maxPassword*utf8.UTFMax {
		return false, nil
	}
	if hash == "" {
		_, err := derive(ctx, password, make([]byte, saltBytes), hashMemory, hashPasses, hashThreads)
		return false, err
	}
	var version int
	var memory, passes uint32
	var threads uint8
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, task.Errorf(task.Internal, "a stored password is in an unknown form")
	}
	_, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &passes, &threads)
	if err != nil || version != argon2.Version || memory > 1<<20 || passes > 100 || passes == 0 || threads == 0 {
		return false, task.Errorf(task.Internal, "a stored password has unknown parameters")
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	want, sumErr := base64.RawStdEncoding.DecodeString(parts[5])
	if saltErr != nil || sumErr != nil || len(want) != hashBytes {
		return false, task.Errorf(task.Internal, "a stored password is damaged")
	}
	is, err := derive(ctx, password, salt, memory, passes, threads)
	return err == nil && subtle.ConstantTimeCompare(is, want) == 1, err
}

func derive(ctx context.Context, password string, salt []byte, memory, passes uint32, threads uint8) ([]byte, error) {
	select {
	case waiting <- struct{}{}:
		defer func() { <-waiting }()
	default:
		return nil, task.Errorf(task.Unavailable, "too many passwords are being checked").WithHint("try again in a moment")
	}
	if checking.Lock(ctx) != nil {
		return nil, task.Wrap(task.Interrupted, ctx.Err(), "interrupted while a password was checked")
	}
	defer checking.Unlock()
	return argon2.IDKey([]byte(password), salt, passes, memory, threads, hashBytes), nil
}
