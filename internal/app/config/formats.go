package config

import (
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toryo-dev/toryo/internal/inspect"
	"github.com/toryo-dev/toryo/internal/lazyregexp"
)

// formats are the rules that the tag "format" names.
var formats = map[string]func(string) *complaint{
	"address":  checkAddress,
	"engine":   checkEngine,
	"file":     checkPath,
	"glob":     checkGlob,
	"host":     checkHost,
	"image":    checkWord,
	"label":    checkLabel,
	"mail":     checkMail,
	"name":     checkName,
	"origin":   checkOrigin,
	"pair":     checkPair,
	"path":     checkPath,
	"pem":      checkPEM,
	"person":   checkPerson,
	"postgres": checkPostgres,
	"project":  checkProject,

	"reasoning": checkReasoningSetting,

	"toleration": checkToleration,

	"hours":    checkHours,
	"signing":  checkSigningSecret,
	"template": checkTemplate,
	"region":   checkRegion,
	"webhook":  checkWebhook,
	"zone":     checkZone,

	"url":      checkURL,
	"variable": checkVariable,
	"word":     checkWord,
}

func checkAddress(text string) *complaint {
	const hint = "write it like 127.0.0.1:8750"
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsFunc(host, unicode.IsSpace) {
		return complain(hint, "%s is not an address of the form host:port", show(text))
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		return complain(hint, "%s has no port between 0 and 65535", show(text))
	}
	return nil
}

// checkPerson wants a name that git takes.
func checkPerson(text string) *complaint {
	if strings.TrimSpace(text) == "" || strings.ContainsAny(text, "<>") || strings.ContainsFunc(text, unicode.IsControl) {
		return complain("write it without < and >", "%s cannot be the name of an author", show(text))
	}
	return nil
}

func checkMail(text string) *complaint {
	name, host, found := strings.Cut(text, "@")
	if !found || name == "" || host == "" || strings.ContainsAny(text, "<> ") || strings.ContainsFunc(text, unicode.IsControl) {
		return complain("write it like bot@example.com", "%s is not an address", show(text))
	}
	return nil
}

func checkGlob(text string) *complaint {
	if !inspect.CheckGlob(text) {
		return complain("write it like docs/** or *.png", "%s is not a pattern of paths", show(text))
	}
	return nil
}

func checkWord(text string) *complaint {
	if text == "" {
		return complain("give it a value or remove the line", "the value is empty")
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return complain("remove the spaces", "%s has a space in it", show(text))
	}
	return nil
}

// checkRegion wants what can be a part of the name of a host: the address of the model is made
// of it.
func checkRegion(text string) *complaint {
	for _, c := range text {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return complain("write it like eu-central-1", "%s has other characters than small letters, digits and -", show(text))
		}
	}
	return checkWord(text)
}

func checkLabel(text string) *complaint {
	if strings.TrimSpace(text) == "" {
		return complain("remove the line to use the default", "the label is empty")
	}
	if strings.TrimSpace(text) != text {
		return complain("remove the spaces", "%s begins or ends with a space", show(text))
	}
	return nil
}

func checkName(text string) *complaint {
	if strings.HasPrefix(text, "@") {
		return complain("write it without the @", "%s begins with @", show(text))
	}
	if strings.Contains(text, "/") {
		return complain("give the name alone", "%s has a / in it", show(text))
	}
	return checkWord(text)
}

func checkPath(text string) *complaint {
	if text == "" {
		return complain("remove the line to use the default", "the path is empty")
	}
	return nil
}

func checkProject(text string) *complaint {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return complain("write it like group/project", "%s is not a project of the form group/name", show(text))
	}
	return checkWord(text)
}

// checkURL does not repeat the value where it can hold a password.
func checkURL(text string) *complaint {
	const hint = "write it like https://host or https://host:port/path"
	address, err := url.Parse(text)
	switch {
	case err != nil:
		return complain(hint, "the value is not a URL")
	case address.User != nil:
		return complain("give the credential as a secret of its own", "the URL has a user name or password in it")
	case address.Scheme != "http" && address.Scheme != "https":
		return complain(hint, "%s does not begin with http:// or https://", show(text))
	case address.Hostname() == "":
		return complain(hint, "%s has no host", show(text))
	case address.RawQuery != "" || address.ForceQuery || address.Fragment != "":
		return complain("end it before the ? or #", "the URL has a query or a fragment")
	}
	return nil
}

// checkOrigin wants the address of a whole server.
func checkOrigin(text string) *complaint {
	if wrong := checkURL(text); wrong != nil {
		return wrong
	}
	if address, err := url.Parse(text); err == nil && address.Path != "" && address.Path != "/" {
		return complain("write it like https://host or https://host:port", "%s has a path, and the server answers at the top only", show(text))
	}
	return nil
}

// checkPostgres accepts both forms that PostgreSQL's programs do, and repeats
// nothing of a value that holds a password.
func checkPostgres(text string) *complaint {
	const hint = "write it like postgres://user:password@host:5432/database"
	if strings.Contains(text, "://") {
		address, err := url.Parse(text)
		if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
			return complain(hint, "the value is not a URL of PostgreSQL")
		}
		return nil
	}
	if !strings.Contains(text, "=") {
		return complain(hint, "the value is not a URL of PostgreSQL")
	}
	return nil
}

// checkEngine accepts the addresses that the clients of container engines do.
func checkEngine(text string) *complaint {
	const hint = "write it like unix:///var/run/docker.sock or tcp://host:2376"
	address, err := url.Parse(text)
	switch {
	case err != nil:
		return complain(hint, "the value is not an address of a container engine")
	case address.User != nil:
		return complain(hint, "the address has a user name or password in it")
	case address.Scheme == "unix" && address.Host == "" && len(address.Path) > 1,
		address.Scheme == "npipe" && len(address.Path) > 1,
		address.Scheme == "tcp" && address.Port() != "" && address.Hostname() != "":
		return nil
	}
	return complain(hint, "%s is not an address of a container engine", show(text))
}

var hostName = lazyregexp.New(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// checkHost accepts the name of a host, with "*." before it for those below it,
// and with a port behind it.
func checkHost(text string) *complaint {
	const hint = "write it like example.com, *.example.com or example.com:8443"
	name := text
	if host, port, err := net.SplitHostPort(text); err == nil && !strings.Contains(text, "/") {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return complain(hint, "%s has no port between 1 and 65535", show(text))
		}
		name = host
	}
	if net.ParseIP(name) == nil && !hostName.MatchString(name) {
		return complain(hint, "%s is not the name of a host", show(text))
	}
	return nil
}

// checkPEM repeats nothing of a key.
func checkPEM(text string) *complaint {
	block, _ := pem.Decode([]byte(text))
	if block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY") {
		return complain("give the whole file, from -----BEGIN to the last -----", "the value is not a private key in PEM")
	}
	return nil
}

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkVariable accepts the name of an environment variable to pass on. What is
// written behind a = is not repeated: it may be a secret.
func checkVariable(text string) *complaint {
	switch {
	case strings.Contains(text, "="):
		return complain("give the name alone, and set the variable where Toryo is started", "an entry has a value")
	case strings.HasPrefix(strings.ToUpper(text), VariablePrefix):
		return complain("give it a variable of its own", "variables of Toryo, which can be secrets, are not passed on")
	case !variableName.MatchString(text):
		return complain("write it like LANG", "%s is not the name of a variable", show(text))
	}
	return nil
}

func checkPair(text string) *complaint {
	if name, _, found := strings.Cut(text, "="); !found || name == "" {
		return complain("write it like pool=sandboxes", "%s is not of the form name=value", show(text))
	}
	return checkWord(text)
}

func checkToleration(text string) *complaint {
	_, effect, found := strings.Cut(text, ":")
	if found && !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
		return complain("write it like dedicated=sandboxes:NoSchedule", "%s has no effect that there is", show(text))
	}
	return checkWord(text)
}
