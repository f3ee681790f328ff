package review

import (
	_ "embed" // for the prompts
	"strings"

	"github.com/toryo-dev/toryo/internal/llm"
	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed prompts/system_ja.md
var systemJapanese string

//go:embed prompts/system_en.md
var systemEnglish string

//go:embed prompts/summarize_ja.md
var summarizeJapanese string

//go:embed prompts/summarize_en.md
var summarizeEnglish string

// wording is everything that the model and people are told, in one language.
type wording struct {
	system, summarize string

	question, overall, purpose, grading, specified, related string
	summaries                                               string
	segment                                                 string // heading of one summary: from turn, to turn
	asked                                                   string // what comes before a question
	user, assistant                                         string // names in what is summarised
	cut                                                     string // behind an answer that was cut off
	unconfirmed                                             string // behind an answer whose citations are not all true

	// purposeWords and gradingWords ask for their blocks, in lower case.
	purposeWords, gradingWords []string
}

// gap stands between two ranges of sections, in every language.
const gap = "……"

var wordings = map[task.Language]wording{
	task.Japanese: {
		system:    strings.TrimSpace(systemJapanese) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		summarize: strings.TrimSpace(summarizeJapanese) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		question:  "【問題文】", overall: "【講評（全体）】", purpose: "【出題趣旨／参考文章】", grading: "【採点実感】",
		specified: "【指定段落付き答案（Specified）】", related: "【指定段落に関連する講評（Related）】",
		summaries: "【これまでの会話の要約】", segment: "【%d～%dターンの要約】", asked: "ユーザーの質問: ",
		user: "ユーザー", assistant: "アシスタント",
		cut:          "（回答が長すぎるため、ここで切れています。）",
		unconfirmed:  "（確認できない引用: %s）",
		purposeWords: []string{"出題趣旨"}, gradingWords: []string{"採点実感"},
	},
	task.English: {
		system:    strings.TrimSpace(systemEnglish) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		summarize: strings.TrimSpace(summarizeEnglish) + "\n\n" + strings.TrimSpace(llm.UntrustedRule),
		question:  "[Question]", overall: "[Review (overall)]", purpose: "[Purpose of the question / reference]", grading: "[Grading impressions]",
		specified: "[Answer with the specified sections (Specified)]", related: "[Review items related to them (Related)]",
		summaries: "[Summary of the conversation so far]", segment: "[Summary of turns %d to %d]", asked: "The user asks: ",
		user: "User", assistant: "Assistant",
		cut:          "(The answer was too long and ends here.)",
		unconfirmed:  "(Not confirmed: %s)",
		purposeWords: []string{"purpose of the question", "purpose text", "出題趣旨"},
		gradingWords: []string{"grading impression", "採点実感"},
	},
}

// wordingIn returns the wording of a language; Japanese is the one of the
// specification, and of every thread that names no other.
func wordingIn(language string) wording {
	if found, ok := wordings[task.Language(language)]; ok {
		return found
	}
	return wordings[task.Japanese]
}
