package doctor

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/toryo-dev/toryo/internal/app/reach"
	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/task"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// ownAccount is what lets a token read whose it is.
var ownAccount = map[task.Forge]string{
	task.GitHub: "the token the permission to read metadata",
	task.GitLab: "the token the scope api, or read_user besides",
	task.Gitea:  "the token the scope read:user",
}

// refused says why a forge did not say who we are: whether it answered, and what.
func (s forgeSurvey) refused(err error) Finding {
	failed, is := errors.AsType[*forge.Error](err)
	if is && failed.Status != 0 {
		return s.answered(failed)
	}
	why, known := reach.Target{
		Setting:   string(s.name) + ".url",
		Authority: "put the certificate of that authority into a file, and set SSL_CERT_FILE and GIT_SSL_CAINFO to it where Toryo is started",
	}.Explain(err)
	// Requests that fail on their way have an address in their error. Without one there was an
	// answer that could not be read.
	if _, onTheWay := errors.AsType[*url.Error](err); is && !known && !onTheWay {
		return s.otherProgram()
	}
	return Finding{
		Name: string(s.name), Status: Missing, Found: fmt.Sprintf("the forge does not answer at %s: %s", s.account.URL, why.Found), Hint: why.Hint,
	}
}

// otherProgram is about an address at which something answers that is not the forge, such as the
// page with which a proxy asks people to log in.
func (s forgeSurvey) otherProgram() Finding {
	return Finding{
		Name: string(s.name), Status: Missing, Found: fmt.Sprintf("something answers at %s, but not the API of %s", s.account.URL, s.name),
		Hint: fmt.Sprintf("check %s.url, and whether a proxy answers in place of the forge", s.name),
	}
}

// answered says what the forge answered in place of who we are.
func (s forgeSurvey) answered(failed *forge.Error) Finding {
	finding := Finding{Name: string(s.name), Status: Missing}
	said := ""
	if failed.Err.Err != nil {
		said = ": " + textfmt.Shorten(textfmt.OneLine(failed.Err.Err.Error()), longestReason)
	}
	limited := failed.Err.Code == task.Unavailable && (failed.Status == http.StatusTooManyRequests || failed.Status == http.StatusForbidden)
	if s.app != nil {
		if found, hint := s.app.answered(s.account.URL, failed.Status, said); found != "" && !limited {
			finding.Found, finding.Hint = found, hint
			return finding
		}
	}
	switch {
	case failed.Status < http.StatusMultipleChoices:
		return s.otherProgram()
	case failed.Status == http.StatusProxyAuthRequired:
		finding.Found, finding.Hint = reach.PasswordForProxy.Found, reach.PasswordForProxy.Hint
	case limited:
		finding.Found, finding.Hint = fmt.Sprintf("%s allows no more requests for now (status %d)", s.account.URL, failed.Status), "try again later"
	case failed.Status == http.StatusUnauthorized:
		finding.Found = fmt.Sprintf("%s does not accept the token (status 401): it is wrong, was revoked or has expired%s", s.account.URL, said)
		finding.Hint = fmt.Sprintf("make a new token for %s there, with what docs/forges.md lists, and put it in place of the old one (%s or %s.token_file)",
			s.account.BotName, strings.Join(s.account.Variables, " or "), s.name)
		finding.Command = setUp
	case failed.Status == http.StatusForbidden:
		finding.Found = fmt.Sprintf("%s accepts the token, but does not let it read whose it is (status 403)%s", s.account.URL, said)
		finding.Hint, finding.Command = "give "+ownAccount[s.name], setUp
	case failed.Status == http.StatusNotFound:
		finding.Found = fmt.Sprintf("there is no API of %s at %s (status 404)", s.name, s.account.URL)
		finding.Hint, finding.Command = fmt.Sprintf("set %s.url to the address of the forge's first page", s.name), setUp+" --url URL"
	default:
		finding.Found = fmt.Sprintf("%s answers with status %d%s", s.account.URL, failed.Status, said)
		finding.Hint = fmt.Sprintf("check %s.url, and whether a proxy answers in place of the forge", s.name)
	}
	return finding
}
