// Package toryo is only this page: a tour of the system, from the ground up.
// Nothing imports it. The program is in cmd/toryo.
//
// # What it is
//
// Toryo takes an issue that a team assigns to it on GitHub, GitLab,
// Gitea/Forgejo or its built-in board, and carries it to a reviewed pull
// request. One server decides what is next; agents on any number of machines
// take tasks and become the role that each task needs; code runs in sandboxes
// only.
//
// # Glossary
//
//	forge       GitHub, GitLab, Gitea/Forgejo or the built-in board
//	item        an issue or a pull request on a forge
//	task        work on one item: development or review; one row in the database
//	generation  the number of a task's time in the queue; each is handed out once, and every
//	            write for the task names it
//	lease       an agent's right to a generation, for some seconds; the agent renews it
//	run         what an agent does with a generation it has the lease on
//	phase       a part of a run: planning, environment set-up, execution, verification, …
//	journal     the entries that a run writes; another run continues from them
//	signal      what reaches a run from outside: stop, pause, comments
//	outbox      forge writes that are in the database before they are sent
//	snapshot    an item as it was read last; in package sandbox, files of an environment
//	mirror      the server's copy of a repository, from which agents fetch
//	verdict     what build and tests in a fresh sandbox said about a commit; of a review,
//	            what it decided: approve, comment or request changes
//	receipt     a signed verdict
//	role        what an agent is for a task, such as BACKENDCODER; labels name it
//
// # The words
//
// Package [github.com/toryo-dev/toryo/internal/task] holds the words that every
// other package speaks in: a task, its key, type, role, phase and state, the
// signals that reach it, its comments and events, and errors with codes. It
// imports the standard library only. Begin there: the state machine is one
// table, and docs/state_machine.md is drawn from it.
//
// Package [github.com/toryo-dev/toryo/internal/redact] masks secrets in whatever
// leaves the process, and package [github.com/toryo-dev/toryo/internal/quote] puts
// text from outside into prompts. Package
// [github.com/toryo-dev/toryo/internal/metrics] holds counters and histograms for
// Prometheus, package [github.com/toryo-dev/toryo/internal/textfmt] shortens texts, and
// package [github.com/toryo-dev/toryo/internal/lifecycle] starts and stops services.
// Package [github.com/toryo-dev/toryo/internal/messages] holds the texts that people
// read, in English and in Japanese.
//
// # What lasts
//
// Package [github.com/toryo-dev/toryo/internal/store] is the port to the
// database, cut into small interfaces by need. Its adapters sqlite (one file,
// the default) and postgres (for several servers) say the same SQL, which is in
// store/relational, and pass the same suite, store/storetest.
//
// Package [github.com/toryo-dev/toryo/internal/journal] reads the journal of a task for
// people, for the pages and the terminal.
//
// Package [github.com/toryo-dev/toryo/internal/retention] removes what was kept for long
// enough, and package [github.com/toryo-dev/toryo/internal/backup] writes and reads the file
// of a backup.
//
// Package [github.com/toryo-dev/toryo/internal/access] makes and checks API
// tokens and knows what each role may do.
//
// # Where the work comes from
//
// Package [github.com/toryo-dev/toryo/internal/forge] is the port to GitHub,
// GitLab, Gitea/Forgejo and the built-in board; its adapters pass one suite,
// forge/forgetest. Hosted forges are reached through forge/transport, which asks
// little. Package [github.com/toryo-dev/toryo/internal/mirror] keeps copies of
// their repositories and serves them to agents. Package
// [github.com/toryo-dev/toryo/internal/inspect] looks at what is to be published, package
// [github.com/toryo-dev/toryo/internal/signing] signs it, and package
// [github.com/toryo-dev/toryo/internal/receipt] makes and checks signed statements of what
// verification found about it.
//
// # Who decides
//
// Package [github.com/toryo-dev/toryo/internal/items] has what is known of issues and pull
// requests, and the one feed of changes to them. Package
// [github.com/toryo-dev/toryo/internal/broker] makes tasks of them and decides what is next;
// broker/assignment is what an agent is given. Package
// [github.com/toryo-dev/toryo/internal/outbox] writes to the forges. Package
// [github.com/toryo-dev/toryo/internal/leader] chooses the server that does what only one
// may do. Package [github.com/toryo-dev/toryo/internal/memory] decides what is learned from
// reviews by people. Package [github.com/toryo-dev/toryo/internal/review] makes reviews and talks
// about them. Package [github.com/toryo-dev/toryo/internal/server] offers all of
// that over HTTP, and package [github.com/toryo-dev/toryo/internal/web] as
// pages. Package [github.com/toryo-dev/toryo/internal/docsite] makes pages of the
// files in docs.
//
// # Who works
//
// Package [github.com/toryo-dev/toryo/internal/wire] is the protocol between
// server and agents, and its client. Package
// [github.com/toryo-dev/toryo/internal/agent] is an agent, and package
// [github.com/toryo-dev/toryo/internal/phase] the phases of its run: below it are
// the conversation with a model, the tools, a turn and the MCP servers. Package
// [github.com/toryo-dev/toryo/internal/llm] is the port to models, with what every
// call passes through; anthropic, openai, gemini and script are its adapters, cloud
// reaches models in Azure, Bedrock and Vertex, ledger keeps its budgets in the store,
// and catalog knows the current models.
//
// Package [github.com/toryo-dev/toryo/internal/environment] finds out what a
// project needs, sets it up and verifies it; environment/trial runs its tests where their
// results count. Package
// [github.com/toryo-dev/toryo/internal/testreport] knows test runners and reads what
// they report. Package
// [github.com/toryo-dev/toryo/internal/sandbox] is the port to the only place
// where code of others runs: its adapters docker, bubblewrap, landlock and kubernetes pass the
// suite sandbox/sandboxtest, sandbox/guest is the program inside and
// sandbox/egress the proxy that is its only way out. Limits are kept by sandbox/cgroup
// and sandbox/disk; sandbox/seccomp filters system calls.
//
// # The program
//
// Package [github.com/toryo-dev/toryo/internal/app] reads the command line; cmd/toryo
// only calls it. The commands are in app/command, and app/site turns a configuration into
// a running server or agent. Package [github.com/toryo-dev/toryo/internal/endtoend] tests
// whole installations, and endtoend/program the program as it is typed. tools/bench
// measures what Toryo costs, and tools/evalset makes tasks for evaluations.
//
// Package [github.com/toryo-dev/toryo/internal/eval] runs sets of tasks through the whole
// program and says what models resolve and cost; its parts read the tasks, make the
// repositories, count and report.
//
// Which package may import which is a table in internal/testkit, and a test
// fails when the code does not keep to it.
package toryo
