// Package sandbox is the execution port: the only place where a repository's
// code and a model's commands run.
//
//	Engine    starts, lists and reaps sandboxes of one kind, and keeps snapshots
//	Sandbox   one running sandbox: commands, files, network policy, snapshot
//
// A sandbox has a workspace, a folder that it shares with the host, a private
// home, and nothing else of the host but toolchains to read. It has no network
// of its own: programs inside reach a proxy of ours, and the policy of the
// sandbox says what that lets through.
//
// The contract of every adapter:
//
//   - Commands of one sandbox run one after the other in what is one shell
//     session to them: folder, variables, functions, aliases and options of one
//     command hold in the next. A shell that was killed begins with what the
//     last command that ended left.
//   - Standard input is empty. Standard output and standard error are kept apart
//     and also in the order of arrival. Past the limit the middle is dropped, and
//     the command goes on.
//   - A command that exceeds a limit is killed with everything else that runs in
//     the sandbox, so nothing it left behind goes on. Its result says which limit.
//   - Limits hold from the start of the sandbox to its end, for all memory and all
//     files, also between commands.
//   - A process that a command leaves in the background lives until the sandbox
//     stops or a command is killed.
//   - No environment variable and no file of the host comes in unless the
//     specification of the sandbox names it.
//   - When the program that started a sandbox is gone, the sandbox ends by itself
//     or is reaped when the engine is asked to reap.
//   - Errors carry a code of package task: NotReady when the engine is not
//     installed or does not answer, NotFound when image, snapshot or sandbox is
//     not there, Unavailable when the sandbox or its engine died, Invalid for a
//     bad specification, TooLarge for a command that is too long, Unsupported
//     for what an adapter cannot do. A command that fails is not an error: it has
//     a result with its exit code.
//
// The adapters are docker (the Engine API), kubernetes (pods), bubblewrap (no daemon, no
// root) and landlock (a confined process, where there is nothing better). Every one passes
// the suite in package sandboxtest. Package guest is the program inside, package
// egress the proxy outside, package local what engines on this machine share, and
// package cgroup has the kernel keep the limits of sandboxes that are processes of it.
package sandbox
