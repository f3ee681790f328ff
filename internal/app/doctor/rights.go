package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/toryo-dev/toryo/internal/forge"
	"github.com/toryo-dev/toryo/internal/textfmt"
)

// allowed says what each right is for.
var allowed = map[forge.Right]string{
	forge.ReadSelf: "read the owner of the token", forge.ReadCode: "read code", forge.Push: "push branches",
	forge.PushWorkflows: "push changes to workflows", forge.ReadItems: "read issues and pull requests",
	forge.CommentOn: "comment", forge.LabelItems: "set labels", forge.OpenPulls: "open and review pull requests",
	forge.SetStatuses: "set commit statuses", forge.ReadChecks: "read checks and their logs", forge.ManageHooks: "create webhooks",
}

// rights looks at what the bot may do in a repository: one right after the other where the
// forge's adapter can, and else what the forge says about the repository.
func (s forgeSurvey) rights(reader forge.Reader) func(context.Context, string) Finding {
	return func(ctx context.Context, repository string) Finding {
		if s.setup == nil {
			return coarseRights(ctx, reader, repository)
		}
		checks, err := s.setup.CheckRights(ctx, repository)
		if err != nil {
			return failure(err)
		}
		return rightsFinding(s.account.BotName, checks)
	}
}

// rightsFinding says which rights are missing, what the forge said, and what gives them.
func rightsFinding(bot string, checks []forge.RightCheck) Finding {
	var missing, unknown, said, given []string
	status := OK
	for _, check := range checks {
		switch {
		case check.State == forge.RightUnknown:
			unknown = append(unknown, allowed[check.Right])
			continue
		case check.State != forge.RightMissing || check.Right == forge.ManageHooks: // only toryo init needs it, and says so
			continue
		case required(check.Right):
			status = Missing
		case status == OK:
			status = Warning
		}
		missing = append(missing, allowed[check.Right])
		said = also(said, forge.ShortReason(textfmt.Plain(check.Found)))
		given = also(given, check.Given)
	}
	if len(missing) == 0 {
		found := bot + " has all permissions"
		if len(unknown) > 0 {
			found = bot + " has all permissions, as far as the forge says (not known: " + strings.Join(unknown, ", ") + ")"
		}
		return Finding{Status: OK, Found: found}
	}
	finding := Finding{
		Status: status, Found: bot + " has no permission to " + strings.Join(missing, ", or to "),
		Hint: "see docs/forges.md for what the token and the account need", Command: setUp,
	}
	if len(said) > 0 {
		finding.Found += "; the forge responded: " + strings.Join(said, "; ")
	}
	if len(given) > 0 {
		finding.Hint = "what gives it: " + strings.Join(given, "; ")
	}
	return finding
}

// also adds a text to others, unless it is empty or among them.
func also(texts []string, text string) []string {
	if text == "" || slices.Contains(texts, text) {
		return texts
	}
	return append(texts, text)
}

func required(right forge.Right) bool {
	for _, needed := range forge.NeededRights {
		if needed.Right == right {
			return needed.Required
		}
	}
	return false
}

// coarseRights is what the forge says about our account where it describes the repository.
func coarseRights(ctx context.Context, reader forge.Reader, repository string) Finding {
	found, err := reader.Repository(ctx, repository)
	if err != nil {
		return failure(err)
	}
	var missing []string
	for _, right := range []struct {
		lacks bool
		what  string
	}{
		{found.Lacks.Push, allowed[forge.Push]}, {found.Lacks.Comment, allowed[forge.CommentOn]},
		{found.Lacks.Label, allowed[forge.LabelItems]}, {found.Lacks.Issues, "work on issues"},
	} {
		if right.lacks {
			missing = append(missing, right.what)
		}
	}
	if len(missing) == 0 {
		return Finding{Status: OK, Found: "the bot has permission to push, comment and set labels, as the forge says"}
	}
	return Finding{
		Status: Missing, Found: "the bot has no permission to " + strings.Join(missing, ", or to "),
		Hint: "give the bot's account write access, and the token what docs/forges.md lists", Command: setUp,
	}
}
