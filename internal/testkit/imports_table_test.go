package testkit

// module is the path of this module, which every package of it begins with.
const module = "github.com/toryo-dev/toryo"

// row says what the code of one package may import. Its tests may import more:
// see checker.testMayImport.
type row struct {
	// imports are packages of this module, named as in the table.
	imports []string
	// tests are packages that its tests may import besides: what it shows or is
	// given, and must not know.
	tests []string
	// any is for the programs that put everything together: they may import all
	// but what belongs to tests, and but other programs.
	any bool
	// standardOnly forbids packages outside the standard library.
	standardOnly bool
	// program is a main package. Nobody imports one.
	program bool
	// testing is for packages that only tests import.
	testing bool
	// parts says that the packages below are not adapters of a port but parts of
	// this one, in layers: it may import them, and they each other, by their rows.
	parts bool
}

// importTable is the import table of the design. Packages are named below
// internal/; the others by their path in the module, "." being its root.
//
// An adapter is a leaf below its port: it imports the port, never a sibling, and
// the port never imports it. A package below app is part of app, and one below
// phase a part of phase.
var importTable = map[string]row{
	".":             {standardOnly: true},
	"cmd/toryo":     {imports: []string{"app"}, program: true},
	"tools/bench":   {any: true, imports: []string{"phase/turntest"}, program: true},
	"tools/dist":    {program: true},
	"tools/evalset": {imports: []string{"app", "environment", "eval/source", "sandbox", "sandbox/guest", "testreport", "workdir"}, program: true},
	"app":           {any: true},
	"docs":          {standardOnly: true},

	"endtoend":         {any: true, testing: true},
	"endtoend/program": {any: true, testing: true},

	"server":            {imports: []string{"server/limit", "broker", "broker/assignment", "items", "memory", "mirror", "review", "review/judge", "access", "statistics", "store", "forge", "forge/board", "wire", "task", "llm", "metrics"}, tests: []string{"receipt", "outbox", "broker/comments", "broker/intake", "review/verdicts", "agent", "inspect", "phase"}, parts: true},
	"server/limit":      {imports: []string{"access"}},
	"broker":            {imports: []string{"broker/assignment", "broker/comments", "images", "items", "outbox", "inspect", "notice", "receipt", "store", "forge", "forge/transport", "task"}, tests: []string{"broker/intake", "review", "review/judge", "review/verdicts", "quote"}, parts: true},
	"broker/intake":     {imports: []string{"broker/assignment", "items", "memory", "outbox", "notice", "review/verdicts", "store", "forge", "task"}},
	"broker/comments":   {imports: []string{"broker/assignment", "items", "outbox", "notice", "store", "forge", "task"}},
	"broker/assignment": {imports: []string{"images", "items", "memory", "outbox", "quote", "review/verdicts", "store", "forge", "task"}},
	"images":            {imports: []string{"forge", "sandbox/egress", "task"}},
	"items":             {imports: []string{"store", "forge", "task"}},
	"outbox":            {imports: []string{"items", "notice", "store", "forge", "task"}},
	"mirror":            {imports: []string{"forge", "git", "inspect", "sandbox/disk", "store", "task"}, tests: []string{"signing"}},
	"review":            {imports: []string{"review/judge", "review/verdicts", "items", "outbox", "store", "forge", "llm", "prompt", "task"}, parts: true},
	"web":               {imports: []string{"access", "docsite", "journal", "receipt", "review", "review/judge", "memory", "statistics", "store", "forge", "forge/board", "wire", "task"}, tests: []string{"broker", "items", "mirror", "outbox", "environment", "llm", "phase", "phase/conversation"}},
	"docsite":           {imports: []string{"docs", "task"}},
	"owner":             {standardOnly: true},
	"access":            {imports: []string{"store", "task"}},
	"access/oidc":       {imports: []string{"access", "task"}},
	"agent":             {imports: []string{"workdir", "agent/contexts", "agent/progress", "agent/workspace", "notice", "phase", "environment", "review/judge", "wire", "sandbox", "llm", "task"}, parts: true},
	"agent/contexts":    {imports: []string{"phase", "phase/conversation", "llm", "task"}},
	"agent/local":       {imports: []string{"agent", "agent/contexts", "agent/workspace", "phase", "llm", "wire", "task"}},
	"agent/progress":    {imports: []string{"phase", "environment", "llm", "notice", "task"}},
	"agent/workspace":   {imports: []string{"workdir", "git", "phase", "phase/ignore", "task", "testfiles"}},
	"review/judge":      {imports: []string{"llm", "prompt", "task"}},
	"review/verdicts":   {imports: []string{"store", "outbox", "forge", "task"}},
	"phase":             {imports: []string{"workdir", "notice", "phase/conversation", "phase/mcp", "phase/tool", "phase/turn", "environment", "environment/trial", "llm", "prompt", "receipt", "sandbox", "testfiles", "testreport", "task"}, parts: true},
	"environment":       {imports: []string{"workdir", "sandbox", "testreport", "llm", "task"}},
	"environment/trial": {imports: []string{"workdir", "environment", "sandbox", "testreport", "task"}},
	"statistics":        {imports: []string{"store", "wire", "task"}},
	"memory":            {imports: []string{"quote", "store", "task"}},
	"testreport":        {standardOnly: true},
	"testfiles":         {},
	"wire":              {imports: []string{"receipt", "task"}},
	"workdir":           {imports: []string{"task"}},
	"git":               {imports: []string{"task"}},
	"inspect":           {imports: []string{"git", "task"}},
	"signing":           {imports: []string{"task"}},
	"receipt":           {imports: []string{"task"}},
	"notice":            {imports: []string{"task"}},
	"notify":            {imports: []string{"notify/format", "notify/quiet", "store", "task"}, parts: true},
	"notify/format":     {imports: []string{"task"}},
	"notify/quiet":      {imports: []string{"task"}},

	"eval":         {imports: []string{"agent/workspace", "workdir", "environment", "environment/trial", "eval/harbor", "eval/source", "eval/taskset", "llm", "phase/ignore", "sandbox", "testfiles", "testreport", "task"}, parts: true},
	"eval/source":  {imports: []string{"git", "task"}},
	"eval/harbor":  {imports: []string{"eval/source", "eval/taskset", "sandbox", "task"}},
	"eval/taskset": {imports: []string{"task"}},
	"eval/history": {imports: []string{"eval", "eval/source", "eval/taskset", "testfiles", "task"}},
	"eval/tally":   {imports: []string{"eval", "llm", "task"}},
	"eval/report":  {imports: []string{"eval", "eval/tally", "llm", "task"}},

	"leader":           {imports: []string{"store"}},
	"backup":           {imports: []string{"task"}},
	"retention":        {imports: []string{"mirror", "store", "task"}, tests: []string{"forge"}},
	"lazyregexp":       {standardOnly: true},
	"lifecycle":        {},
	"messages":         {imports: []string{"task"}},
	"textfmt":          {standardOnly: true},
	"store":            {imports: []string{"task"}},
	"store/relational": {imports: []string{"store", "task"}},
	"store/sqlite":     {imports: []string{"owner", "store", "store/relational", "task"}},
	"store/postgres":   {imports: []string{"store", "store/relational", "task"}},
	"store/storetest":  {imports: []string{"store", "task"}, testing: true},

	"forge":           {imports: []string{"task"}},
	"forge/github":    {imports: []string{"forge", "task"}},
	"forge/gitlab":    {imports: []string{"forge", "task"}},
	"forge/gitea":     {imports: []string{"forge", "task"}},
	"forge/board":     {imports: []string{"forge", "git", "store", "task"}},
	"forge/transport": {imports: []string{"forge", "task"}},
	"forge/dummy":     {imports: []string{"forge", "task"}, testing: true},
	"forge/forgetest": {imports: []string{"forge", "forge/transport", "task"}, testing: true},

	"sandbox":               {imports: []string{"workdir", "task"}},
	"sandbox/cgroup":        {imports: []string{"sandbox"}},
	"sandbox/seccomp":       {},
	"sandbox/disk":          {},
	"sandbox/guest":         {imports: []string{"workdir", "sandbox", "sandbox/disk", "sandbox/seccomp", "task"}},
	"sandbox/guest/program": {imports: []string{"sandbox/guest", "sandbox/landlock"}, program: true},
	"sandbox/egress":        {imports: []string{"sandbox", "task"}},
	"sandbox/local":         {imports: []string{"workdir", "sandbox", "sandbox/cgroup", "sandbox/disk", "sandbox/guest", "task"}},
	"sandbox/docker":        {imports: []string{"workdir", "sandbox", "sandbox/disk", "sandbox/guest", "sandbox/local", "task"}},
	"sandbox/bubblewrap":    {imports: []string{"workdir", "sandbox", "sandbox/cgroup", "sandbox/guest", "sandbox/local", "task"}},
	"sandbox/kubernetes":    {imports: []string{"workdir", "sandbox", "sandbox/guest", "sandbox/local", "task"}},
	"sandbox/landlock":      {imports: []string{"workdir", "sandbox", "sandbox/cgroup", "sandbox/guest", "sandbox/local", "sandbox/seccomp", "task"}},
	"sandbox/sandboxtest":   {imports: []string{"workdir", "sandbox", "sandbox/egress", "task", "testkit"}, testing: true},

	"phase/conversation": {imports: []string{"llm", "prompt", "task"}},
	"phase/ignore":       {standardOnly: true},
	"phase/tool":         {imports: []string{"phase/ignore", "workdir", "llm", "task"}, tests: []string{"quote"}},
	"phase/turn":         {imports: []string{"phase/conversation", "phase/tool", "llm", "task"}},
	"phase/turntest":     {imports: []string{"phase/conversation", "phase/tool", "phase/turn", "llm", "llm/anthropic", "llm/openai", "llm/script", "task"}, testing: true},
	"phase/verdicts":     {tests: []string{"phase", "sandbox", "task"}, testing: true},
	"phase/crashes":      {tests: []string{"phase", "task"}, testing: true},
	"phase/phasetest":    {imports: []string{"workdir", "phase", "phase/mcp", "phase/turn", "agent/workspace", "environment", "llm", "llm/script", "sandbox", "sandbox/bubblewrap", "sandbox/egress", "task", "testkit"}, testing: true},
	"phase/mcp":          {imports: []string{"phase/tool", "llm", "task"}},

	"llm":           {imports: []string{"quote", "task"}},
	"llm/anthropic": {imports: []string{"llm"}},
	"llm/openai":    {imports: []string{"llm", "task"}},
	"llm/gemini":    {imports: []string{"llm", "task"}},
	"llm/cloud":     {imports: []string{"llm", "task"}},
	"llm/script":    {imports: []string{"llm", "task"}},
	"llm/catalog":   {imports: []string{"llm"}},
	"llm/ledger":    {imports: []string{"llm", "store", "task"}},
	"llm/llmtest":   {imports: []string{"llm", "llm/script", "task", "testkit"}, testing: true},

	"metrics":         {standardOnly: true},
	"prompt":          {imports: []string{"task"}},
	"quote":           {standardOnly: true},
	"redact":          {standardOnly: true},
	"redact/rules":    {imports: []string{"redact"}},
	"task":            {standardOnly: true},
	"task/machinedoc": {imports: []string{"task"}, standardOnly: true, program: true},
	"testkit":         {tests: []string{"app"}, testing: true},

	"journal":             {imports: []string{"task"}},
	"journal/journaltest": {imports: []string{"phase", "phase/conversation", "environment", "llm", "task"}, testing: true},

	"testkit/forgeworld": {imports: []string{"forge", "task"}, testing: true},
	"testkit/forgesetup": {imports: []string{"forge", "forge/dummy", "forge/gitea", "task"}, testing: true},
	"testkit/gitsite":    {imports: []string{"forge", "mirror", "task"}, testing: true},
}

// forAll may be imported by every package, except by notFor and by each other.
var forAll = []string{"lazyregexp", "lifecycle", "messages", "redact", "textfmt"}

// notFor is the package that everything else is built on.
const notFor = "task"

// confined are the modules of other projects that only some packages may import,
// so that a change of library stays a change of one package. A name covers all
// that is below it.
var confined = map[string][]string{
	"github.com/jackc/pgx":                       {"store/postgres", "testkit", "tools/bench"},
	"modernc.org":                                {"store/sqlite"},
	"github.com/pressly/goose":                   {"store/relational", "store/postgres", "store/sqlite"},
	"github.com/google/go-github":                {"forge/github"},
	"gitlab.com/gitlab-org/api/client-go":        {"forge/gitlab"},
	"code.gitea.io/sdk/gitea":                    {"forge/gitea", "testkit"},
	"github.com/moby/moby":                       {"sandbox/docker"},
	"github.com/containerd/errdefs":              {"sandbox/docker"},
	"github.com/landlock-lsm/go-landlock":        {"sandbox/landlock"},
	"github.com/opencontainers/image-spec":       {"tools/dist"},
	"github.com/hashicorp/yamux":                 {"sandbox/guest"},
	"github.com/coder/websocket":                 {"sandbox/kubernetes"},
	"github.com/secure-systems-lab":              {"receipt"},
	"github.com/modelcontextprotocol/go-sdk":     {"phase/mcp"},
	"github.com/google/jsonschema-go":            {"phase", "phase/mcp", "phase/tool", "review/judge"},
	"github.com/danielgtaylor/huma":              {"server"},
	"github.com/a-h/templ":                       {"app", "eval/report", "web"},
	"github.com/microcosm-cc/bluemonday":         {"docsite", "web"},
	"golang.org/x/crypto/argon2":                 {"access"},
	"github.com/coreos/go-oidc":                  {"access/oidc"},
	"golang.org/x/oauth2":                        {"access/oidc"},
	"github.com/spf13/cobra":                     {"app"},
	"github.com/spf13/pflag":                     {"app"},
	"go.opentelemetry.io/otel/sdk":               {"app"},
	"github.com/google/go-cmp":                   testsOnly,
	"pgregory.net/rapid":                         testsOnly,
	"github.com/rogpeppe/go-internal/testscript": testsOnly,
	"github.com/chromedp":                        testsOnly,
	"github.com/getkin/kin-openapi":              testsOnly,
	"github.com/compose-spec/compose-go":         testsOnly,
	"k8s.io":                                     testsOnly,
	"sigs.k8s.io":                                testsOnly,
}

// testsOnly confines a module to test files and to the packages for tests.
var testsOnly = []string{}
