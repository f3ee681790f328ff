package connect

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
)

// Explain says in words what to do about a call to a forge that failed.
func Explain(err error, kind Kind, address string) error {
	if err == nil {
		return nil
	}
	why, known := reach.Target{
		Setting: "the address", Authority: "add it to the certificates of the system, " +
			"or put it into a file and set SSL_CERT_FILE and GIT_SSL_CAINFO to its path whenever Toryo is started",
	}.Explain(err)
	if known {
		return task.Errorf(task.Unavailable, "%s cannot be reached: %s", address, why.Found).WithHint("%s", why.Hint)
	}
	switch task.CodeOf(err) {
	case task.Unauthorized:
		return &task.Error{
			Code: task.Unauthorized, Message: fmt.Sprintf("%s does not accept the token: it is wrong, was revoked or has expired", address), Err: reach.Brief(err),
			Hint: fmt.Sprintf("make one at %s; it needs %s", kind.TokenPage(address), kind.Needs),
		}
	case task.Forbidden:
		return &task.Error{
			Code: task.Forbidden, Message: "the token is not allowed to do this", Err: reach.Brief(err),
			Hint: fmt.Sprintf("it needs %s: %s", kind.Needs, kind.TokenPage(address)),
		}
	case task.Unavailable:
		if statusOf(err) == http.StatusProxyAuthRequired {
			return task.Errorf(task.Unavailable, "%s", reach.PasswordForProxy.Found).WithHint("%s", reach.PasswordForProxy.Hint)
		}
	}
	return err
}

func statusOf(err error) int {
	if failure, is := errors.AsType[*forge.Error](err); is {
		return failure.Status
	}
	return 0
}
