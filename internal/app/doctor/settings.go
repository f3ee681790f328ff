package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/toryo-dev/toryo/internal/app/config"
	"github.com/toryo-dev/toryo/internal/task"
)

// Configuration says whether the configuration has problems.
func Configuration(file string, report config.Report) Finding {
	if file == "" {
		file = "no file, only defaults and environment"
	}
	finding := Finding{Name: "configuration"}
	problems := report.Problems
	switch {
	case len(report.Problems) > 0:
		finding.Status = Missing
	case len(report.Warnings) > 0:
		finding.Status, problems = Warning, report.Warnings
	default:
		return Finding{Name: finding.Name, Status: OK, Found: file}
	}
	first := problems[0]
	finding.Hint, first.Hint = first.Hint, ""
	finding.Found = first.String()
	if more := len(problems) - 1; more > 0 {
		finding.Found += fmt.Sprintf(" (and %d more: see toryo config check)", more)
	}
	return finding
}

// Model says whether a model is configured, with a key if its provider wants one.
// Ask really asks it and says how that went; without it the model is not tried.
func Model(ctx context.Context, llm config.LLM, ask func(context.Context) (string, error)) Finding {
	return modelNamed(ctx, "model", llm, ask)
}

// Fallback says the same of the second model.
func Fallback(ctx context.Context, llm config.LLM, ask func(context.Context) (string, error)) Finding {
	finding := modelNamed(ctx, "fallback", llm, ask)
	finding.Command = "" // toryo init sets the first
	return finding
}

func modelNamed(ctx context.Context, name string, llm config.LLM, ask func(context.Context) (string, error)) Finding {
	named := strings.TrimSpace(llm.Provider + " " + llm.Model)
	switch lacks := llm.Lacking(); {
	case llm.Provider == "":
		return Finding{Name: name, Status: Warning, Found: "none is configured", Hint: HintForModel(llm), Command: setUp}
	case lacks != "":
		return Finding{Name: name, Status: Warning, Found: named + ", but " + lacks, Hint: HintForModel(llm), Command: setUp}
	case ask == nil:
		return Finding{Name: name, Status: OK, Found: named + " (not tried: toryo doctor --online asks it)"}
	}
	ctx, cancel := context.WithTimeout(ctx, modelTimeout)
	defer cancel()
	found, err := ask(ctx)
	if err == nil {
		return Finding{Name: name, Status: OK, Found: named + " " + found}
	}
	finding := Finding{Name: name, Status: Missing, Found: err.Error(), Hint: "see llm in toryo.yaml", Command: setUp}
	if coded, isCoded := task.AsError(err); isCoded && coded.Hint != "" {
		finding.Found, finding.Hint = coded.Message, coded.Hint
	}
	return finding
}

// HintForModel says how to configure a model.
func HintForModel(llm config.LLM) string {
	key := strings.Join(llm.KeyVariables(), " or ")
	switch {
	case llm.Provider == "":
		return "set llm.provider and llm.model in toryo.yaml and the key in " + key + " or the variable of the provider, such as ANTHROPIC_API_KEY"
	case llm.Provider == "script":
		return "set llm.script in toryo.yaml to the path of the script"
	case llm.Model == "":
		return "set llm.model in toryo.yaml"
	case llm.HintForCloud() != "":
		return llm.HintForCloud()
	}
	return "put the key into " + key + ", or into a file that llm.api_key_file in toryo.yaml names"
}

// modelTimeout is how long a model may take to answer: a local one may have to be
// loaded first.
const modelTimeout = time.Minute

// Links looks whether people can open the links in comments: where there is a
// forge, they hardly sit at this machine.
func Links(c config.Config, address string) Finding {
	if c.Server.PublicURL == "" && len(c.ConfiguredForges()) > 0 {
		return Finding{
			Name: "links", Status: Warning, Found: fmt.Sprintf("those in comments begin with %s, which others may not be able to open", address),
			Hint: "set server.public_url in toryo.yaml to the address under which people reach the server", Command: setUp + " --public-url URL",
		}
	}
	return Finding{Name: "links", Status: OK, Found: fmt.Sprintf("those in comments begin with %s", address)}
}

// DataDir checks that the data directory, or the nearest folder above it that
// exists, can be written to.
func DataDir(path string) Check {
	return func(context.Context) Finding {
		finding := Finding{Name: "data directory", Status: Missing, Hint: "choose another with --data or data_dir, or change its owner"}
		existing, err := nearestFolder(path)
		if err != nil {
			finding.Found = err.Error()
			return finding
		}
		probe, err := os.CreateTemp(existing, ".toryo-doctor-*")
		if err != nil {
			finding.Found = fmt.Sprintf("%s cannot be written to: %v", existing, err)
			who, unknown := user.Current()
			if unknown == nil && errors.Is(err, fs.ErrPermission) && existing != path { // one that is there may be a server's
				finding.Command = "sudo install -d -m 0700 -o " + who.Username + " '" + strings.ReplaceAll(path, "'", `'\''`) + "'"
			}
			return finding
		}
		_ = probe.Close()
		if err := os.Remove(probe.Name()); err != nil {
			finding.Found = fmt.Sprintf("cannot remove a file in %s: %v", existing, err)
			return finding
		}
		if existing != path {
			return Finding{Name: finding.Name, Status: OK, Found: path + " (will be made)"}
		}
		return Finding{Name: finding.Name, Status: OK, Found: path}
	}
}

func nearestFolder(path string) (string, error) {
	for {
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a folder", path)
		case err == nil:
			return path, nil
		case !os.IsNotExist(err):
			return "", err
		}
		parent := filepath.Dir(path)
		if parent == path {
			return "", err
		}
		path = parent
	}
}

// Database checks the database with a look that changes nothing.
func Database(driver string, look func(context.Context) (string, error)) Check {
	return func(ctx context.Context) Finding {
		found, err := look(ctx)
		if err == nil {
			return Finding{Name: "database", Status: OK, Found: driver + ", " + found}
		}
		finding := Finding{Name: "database", Status: Missing, Found: driver + ", " + err.Error(), Hint: "see database in toryo.yaml"}
		if coded, isCoded := task.AsError(err); isCoded && coded.Hint != "" {
			finding.Found, finding.Hint = driver+", "+coded.Message, coded.Hint
		}
		return finding
	}
}

// Board says where the repositories of the built-in board are: in a folder that
// several servers on one database do not have in common by themselves.
func Board(driver, folder string) Check {
	return func(context.Context) Finding {
		owners, err := filepath.Glob(filepath.Join(folder, "*", "*.git"))
		switch {
		case err != nil || len(owners) == 0:
			return Finding{Name: "board", Status: OK, Found: "no repositories"}
		case driver == "postgres":
			return Finding{
				Name: "board", Status: Warning, Found: fmt.Sprintf("%d repositories in %s, for this server only", len(owners), folder),
				Hint: "if more servers use the database, let them have this folder in common",
			}
		default:
			return Finding{Name: "board", Status: OK, Found: fmt.Sprintf("%d repositories in %s", len(owners), folder)}
		}
	}
}
