package environment

import (
	"slices"
	"strings"
)

// The ranks say which of two findings is the cause of the other: the lower one
// is. A disk that is full also breaks downloads; a download that fails also
// leaves a package that is not found.
const (
	exhausted = iota // memory, disk, processes
	platform         // the machine that runs CI jobs
	engine           // the container engine
	locked           // someone else holds the package manager's lock
	broken           // a download or a connection failed for good
	syntax           // a file that cannot be read
	conflict         // versions that do not go together
	missing          // a package or version that is not there
	retried          // a connection that failed and was tried again
	absent           // not found, maybe for want of a connection
	vague            // words that usually mean it
)

var rankOrder = []int{exhausted, platform, engine, locked, broken, syntax, conflict, missing, retried, absent, vague}

// rule tells a kind of failure from one line of a log. A line matches when it
// has every text of all and none of not. Texts are in lower case; a text with a
// bar means one of several.
type rule struct {
	kind Kind
	rank int
	all  []string
	not  []string
	only bool // the text is the whole line
}

func (r rule) matches(line string) bool {
	if r.only {
		return strings.TrimSpace(line) == r.all[0]
	}
	for _, text := range r.all {
		if !hasOne(line, text) {
			return false
		}
	}
	for _, text := range r.not {
		if strings.Contains(line, text) {
			return false
		}
	}
	return true
}

func hasOne(line, texts string) bool {
	for {
		text, rest, more := strings.Cut(texts, "|")
		if strings.Contains(line, text) {
			return true
		}
		if !more {
			return false
		}
		texts = rest
	}
}

func when(kind Kind, rank int, all ...string) rule { return rule{kind: kind, rank: rank, all: all} }

func (r rule) alone() rule {
	r.only = true
	return r
}

func (r rule) unless(not ...string) rule {
	r.not = not
	return r
}

// local marks addresses on the machine itself: a refused connection there is a
// service that was not started, not a network that is down.
var local = []string{"localhost", "127.0.0.1", "[::1]"}

// private marks addresses of other machines of the project's own, and of its own programs.
var private = []string{"//10.", "//192.168.", "//172.16.", "dial unix"}

// ofTests marks what a test says: it may have such words in it for any reason.
var ofTests = []string{"test", "assert", "spec.", "expect"}

// httpWords are in lines that are about HTTP.
const httpWords = "http|url|request|response|fetch|download|retriev|origin|gateway|server|upstream|registry|repository|repodata|mirror|proxy|package|npm|connection|access"

// rules is the table. Each row was met in real logs of the tool that is named.
var rules = []rule{
	// Memory, disk, processes.
	when(Resource, exhausted, "no space left on device"),
	when(Resource, exhausted, "enospc").unless("system limit for number of file watchers"),
	when(Resource, exhausted, "disk quota exceeded"),
	when(Resource, exhausted, "not enough space on the disk|there is not enough space|don't have enough free space|not enough free disk space|insufficient disk space|no space left in"),
	when(Resource, exhausted, "at least ", " needed on the ", " filesystem"),
	when(Resource, exhausted, "cannot allocate memory"),
	when(Resource, exhausted, "java.lang.outofmemoryerror"),
	when(Resource, exhausted, "java heap space"),
	when(Resource, exhausted, "insufficient memory for the java runtime"),
	when(Resource, exhausted, "gc overhead limit exceeded"),
	when(Resource, exhausted, "javascript heap out of memory"),
	when(Resource, exhausted, "virtual memory exhausted"),
	when(Resource, exhausted, "fatal error: runtime: out of memory|runtime: cannot allocate memory"),
	when(Resource, exhausted, "out of memory: killed process|oom-kill|oomkilled|oom killed|out of memory allocating"),
	when(Resource, exhausted, "std::bad_alloc"),
	when(Resource, exhausted, "memory allocation of ", "failed"),
	when(Resource, exhausted, "killed (program cc1|killed signal terminated program|fatal error: killed"),
	when(Resource, exhausted, "signal: killed|signal: 9, sigkill|process didn't exit successfully", "kill"),
	when(Resource, exhausted, "fork: retry: resource temporarily unavailable|fork: cannot allocate|can't fork|cannot fork|fork: resource temporarily"),
	when(Resource, exhausted, "resource temporarily unavailable", "fork|thread|pthread"),
	when(Resource, exhausted, "pthread_create failed|failed to create new os thread"),
	when(Resource, exhausted, "too many open files"),
	when(Resource, exhausted, "allowed memory size of", "exhausted"),
	when(Resource, exhausted, "memoryerror").unless("def ", "except"),
	when(Resource, exhausted, "condamemoryerror"),
	when(Resource, exhausted, "compiler out of memory|collect2: fatal error: ld terminated with signal 9"),
	when(Resource, vague, "error 137|exit code 137|exit code: 137|status 137|exit status 137|code 137"),
	when(Resource, vague, " killed  |: killed"),
	when(Resource, vague, "killed").alone(),
	when(Resource, vague, "daemon disappeared unexpectedly"),

	// The machine that runs CI jobs, not the job: GitLab Runner calls it a system failure, whatever
	// broke in it. The next attempt gets another machine or pod.
	when(Server, platform, "job failed (system failure)|preparation failed: ", "docker daemon|timed out|timeout|prepare environment|adding cache volume|failed to pull image|connection|unreachable|no such host|error during connect| pod |pod/|pod:").unless(append([]string{"no such image", "not found"}, ofTests...)...),
	when(Server, platform, "error: ", "timed out waiting for pod|timed out waiting for the pod").unless(ofTests...),
	when(Server, platform, "the runner has received a shutdown signal. this can happen|runner: ", "shutdown signal|lost communication with the server").unless(ofTests...),

	// The container engine.
	when(Container, engine, "cannot connect to the docker daemon|error during connect:|is the docker daemon running"),
	when(Container, engine, "error response from daemon").unless(
		"dockerfile parse error", "no build stage", "toomanyrequests", "timeout", "no such host", "connection refused",
		"dockerfile (", "connection reset", "service unavailable", "unexpected eof", "bad gateway", "network is unreachable", "cannot assign requested address", "no route to host", "context deadline exceeded",
		"client.timeout", "request canceled", "internal server error", "too many requests", ": eof", "cannot locate specified dockerfile"),
	when(Container, engine, "oci runtime").unless("timeout"),
	when(Container, engine, "pull access denied"),
	when(Container, engine, "manifest unknown|manifest not found"),
	when(Container, engine, "manifest for ", " not found"),
	when(Container, engine, "no matching manifest for|no match for platform in manifest"),
	when(Container, engine, "repository ", "does not exist or may require 'docker login'|not found: does not exist or no pull access"),
	when(Container, engine, "failed to resolve source metadata", "not found|denied|unauthorized"),
	when(Container, engine, "exec user process caused"),
	when(Container, engine, "unauthorized: ", "authentication|access to the requested|please login|authorized|credentials"),
	when(Container, engine, "failed to start container|unable to start container|container failed to start|failed to create shim|failed to create containerd"),
	when(Container, engine, "imagepullbackoff|errimagepull|did not resolve to an alias and no unqualified-search"),
	when(Container, engine, "image ", " not found|could not be found", "docker|container|repository").unless("npm", "404"),
	when(Container, engine, "error removing intermediate container|no basic auth credentials|cannot be used on this platform"),
	when(Container, engine, "bwrap: "),
	when(Container, engine, "failed to register layer|failed to extract layer|layers from manifest don't match|unsupported manifest|schema 1 manifest|manifest v2, schema 1|docker image format v1"),
	when(Container, engine, "container ", " is not running|exited unexpectedly|no such container"),

	// Locks of package managers.
	when(Lock, locked, "could not get lock").unless("waiting for cache lock"),
	when(Lock, locked, "unable to acquire the dpkg"),
	when(Lock, locked, "unable to lock the administration directory|unable to lock directory|unable to lock the download directory|unable to lock database"),
	when(Lock, locked, "is locked by another process|locked by another process|another process is using|another process has"),
	when(Lock, retried, "waiting for cache lock|waiting for process with pid|blocking waiting for file lock|waiting for lock"),
	when(Lock, locked, "another app is currently holding the"),
	when(Lock, locked, "timeout waiting to lock|timed out waiting to lock|failed to acquire lock|could not acquire lock|unable to acquire lock|unable to obtain lock|couldn't acquire"),
	when(Lock, locked, "lockerror|locktimeout|lock_timeout|elocked").unless("package-lock", "no module", "import"),
	when(Lock, locked, "gradle", "lock", "currently in use|timeout|cannot lock"),
	when(Lock, locked, "index.lock': file exists|.lock': file exists"),
	when(Lock, locked, "database is locked"),
	when(Lock, locked, "lock file ", "already|exists|held|waiting"),
	when(Lock, locked, "existing lock ", "yum|dnf|.pid"),
	when(Lock, locked, "conda", "lock", "waiting|acquire|another|failed to"),
	when(Lock, locked, "eagain", "lock"),
	when(Lock, locked, "resource temporarily unavailable", "lock"),

	// Servers that are ill for the moment.
	when(Server, broken, "http error 50|http error 429|http status 50|http status 429|status code 50|status code: 50|status code 429|statuscode=50|response code: 50|response code 50|http 50|http/1.1 50|http/2 50|http/1.0 50|http 429|http code = 50").unless("508", "509", "505", "506"),
	when(Server, broken, "returned error: 50|returned error: 429|received status code 50|error 500: internal").unless("exit"),
	// A number by itself may count anything: it is a status where the line is about HTTP.
	when(Server, broken, "status: 50|status 50|error 502|error 503|error 504|error 429|522 ", httpWords).unless("exit", "522 mb", "522 kb", "522 b", "522 k", "522 m",
		"status 505", "status 506", "status 508", "status 509", "status: 505", "status: 506", "status: 508", "status: 509"),
	when(Server, broken, "503 service unavailable|503 service temporarily unavailable|502 bad gateway|504 gateway|500 internal server error|429 too many requests|503 backend|503 server error|500 server error|502 server error|504 server error|429 client error|503 first byte timeout|524 a timeout"),
	when(Server, broken, "503: service|502: bad gateway|504: gateway|429: too many|503  service unavailable|502  bad gateway|504  gateway|500  internal server error|429  too many requests"),
	when(Server, broken, "e503|e502|e504|e500|e429", "err!|error"),
	when(Server, broken, "toomanyrequests|too many 503 error responses|too many 500 error responses|too many 502|too many 504|too many 429"),
	when(Server, broken, "service unavailable|bad gateway|gateway timeout|gateway time-out|server is overloaded|temporarily unavailable", "http|server|url|registry|fetch|download|response|mirror|repo"),
	when(Server, broken, "hash sum mismatch|file has unexpected size|mirror sync in progress"),
	when(Network, broken, "server misbehaving"),
	when(Server, broken, "rate limit exceeded|api rate limit"),
	when(Server, broken, "remote error: internal server error|the remote end hung up unexpectedly", "50"),
	when(Server, broken, "condahttperror: http 5|condahttperror: http 429"),

	// The network.
	when(Network, broken, "could not resolve host|couldn't resolve host|could not resolve proxy"),
	when(Network, broken, "could not resolve '"),
	when(Network, broken, "temporary failure resolving|temporary failure in name resolution|failure in name resolution"),
	when(Network, broken, "name or service not known|nodename nor servname|no address associated with hostname"),
	when(Network, broken, "unable to resolve host|failed to lookup address|dns lookup failed|name resolution fail|dns error|bad address '").unless("sudo: unable to resolve host", "import", "module", "dependenc", "loader", "symbol", "error[e", "source metadata"),
	when(Network, broken, "failed to resolve", "host|dns|address|proxy|http|.com|.org|.net|.io").unless("import", "module", "dependenc", "loader", "symbol", "error[e", "source metadata"),
	when(Network, broken, "all attempts to connect to"),
	// Go programs, Docker's among them, when a registry does not answer.
	when(Network, broken, "context deadline exceeded|client.timeout exceeded|request canceled while waiting for connection", "http|dial tcp|dial udp|registry|failed to pull|error pulling").unless(slices.Concat(ofTests, local, private)...),
	when(Network, broken, "error response from daemon: ", ": eof"),
	when(Network, broken, "could not resolve: ", "curl|host"),
	when(Network, broken, "no such host"),
	when(Network, broken, "unknownhostexception|unknown host|noroutetohostexception"),
	when(Network, broken, "getaddrinfo", "enotfound|eai_again|failed|error").unless(local...),
	when(Network, broken, "eai_again"),
	when(Network, broken, "etimedout|econnreset|esockettimedout|enetunreach|ehostunreach|err_socket_timeout|erequesttimeout| enotfound|'enotfound|\"enotfound").unless(local...),
	when(Network, broken, "econnrefused|connection refused").unless(local...),
	when(Network, broken, "connection timed out|connect timed out|connection timeout|connecttimeout|connect timeout|operation timed out|request timed out|read timed out|readtimeouterror|i/o timeout|timed out after|sockettimeoutexception|timeout exceeded|timeout was reached|network timeout|handshake timeout|timed out reading|download timed out|operation too slow|timeout error").unless(append([]string{"test", "--connect"}, local...)...),
	when(Network, broken, "connection reset|connection was reset|connection aborted|connection broken|connection closed|connection failed|broken connection").unless(append([]string{"retrying", "warning: retry"}, local...)...),
	when(Network, broken, "network is unreachable|connect: cannot assign requested address|no route to host|host is unreachable|network unreachable|there was a problem with your network connection|network connectivity|network error|check your internet connection|check your network|no internet"),
	when(Network, broken, "failed to connect to|could not connect to|couldn't connect to|unable to connect to|cannot connect to|failed to establish a new connection|can't connect to").unless(append([]string{"docker daemon", "display", "database", "bus", "retrying", "mysql", "postgres", "redis", "socket", "x server", "mongo", "chrome"}, local...)...),
	when(Network, broken, "unexpected eof|unexpected end of file", "http|https|fetch|download|read:|ssl|tls|remote|rpc failed|registry").unless("json", "gzip: stdin", "xml", "yaml", ".py\"", "bash"),
	when(Network, broken, "eof occurred in violation of protocol|ssl_error_syscall|gnutls recv error|gnutls_handshake|ssl connection has been closed|unable to establish ssl connection|tls connection was non-properly terminated|error in the pull function"),
	when(Network, broken, "early eof|rpc failed|the remote end hung up unexpectedly|fetch-pack: invalid index-pack|unexpected disconnect while reading sideband"),
	when(Network, broken, "cannot fetch index base url|transfer failed - "),
	when(Network, broken, "error sending request for url|error sending request:").unless(local...),
	when(Network, broken, "transfer closed with|empty reply from server|recv failure|send failure|failure when receiving data|incompleteread|chunkedencodingerror|remotedisconnected|protocolerror|http2 framing layer|stream was not closed cleanly"),
	when(Network, broken, "newconnectionerror|maxretryerror|max retries exceeded|proxyerror|cannot connect to proxy|tunneling socket could not be established").unless("retrying"),
	when(Network, broken, "condahttperror: http 000|connection failed for url|condaconnectionerror|an http error occurred when trying to retrieve this url"),
	when(Network, broken, "could not transfer artifact", "timed out|connect|reset|unknown host|handshake|no such host|peer not authenticated|transfer failed"),
	when(Network, broken, "could not get resource|could not head|could not get '", "timed out|connect|reset|unknown host"),
	when(Network, broken, "keyserver receive failed|keyserver timed out|gpg: keyserver", "timed out|timeout|no data|general error|server failure|no keyserver|unreachable|not responding|keyserver error"),
	when(Network, broken, "network request failed|spurious network error|failed to download from", "network|http|url"),
	when(Network, broken, "temporary error (try again later)|network error (check internet connection|dns lookup error|dns: transient error|remote server returned error (try"),
	when(Network, broken, "could not fetch specs from|download failed repeatedly|no more mirrors to try|cannot find a valid baseurl for repo|could not retrieve mirrorlist|all mirrors were tried|curl error (6)|curl error (7)|curl error (28)|curl error 6|curl error 7|curl error 28|curl error 35|curl: (6)|curl: (7)|curl: (28)|curl: (35)|curl: (52)|curl: (56)|curl: (18)").unless("error: 404", "404 not found"),
	when(Network, retried, "retrying", "connection|timeout|timed out|newconnection|resolution|reset").unless(local...),
	when(Network, retried, "warning: retrying|network request", "retry|failed"),
	when(Network, retried, "will retry in|is being retried|trying again (", "timeout|network|connect|request"),

	// Files that cannot be read.
	when(ConfigSyntax, syntax, "dockerfile parse error|no build stage in current context|invalid reference format|dockerfile (dockerfile) cannot be empty|unknown instruction:|no image was generated. is your dockerfile empty|the dockerfile (").unless("no such file"),
	when(ConfigSyntax, syntax, "ejsonparse|failed to parse json|json.parse|failed at parsing json|is not valid json|invalid json|error parsing json|unexpected token in json|json parse error|jsondecodeerror|unexpected end of json|jsonparseexception|does not contain valid json|parse error on line"),
	when(ConfigSyntax, syntax, "unexpected token", "json"),
	when(ConfigSyntax, syntax, "yamlexception|yaml.scanner|yaml.parser|scannererror|parsererror|yaml: line|error parsing yaml|yaml parse error|invalid yaml|is not valid yaml|cannot start any token|mapping values are not allowed|could not parse yaml|did not find expected|cannot unmarshal !!").unless("rdoc"),
	when(ConfigSyntax, syntax, "tomldecodeerror|toml parse error|could not parse input as toml|invalid toml|toml decode|error: invalid tomldocument|tomlkit.exceptions|toml.decoder|is not a valid toml|unable to parse toml|failed to parse manifest|failed to parse `pyproject|error parsing toml"),
	when(ConfigSyntax, syntax, "the pyproject configuration is invalid|the poetry configuration is invalid|invalid pyproject.toml|configuration error: `project|additional properties are not allowed"),
	when(ConfigSyntax, syntax, "the project file could not be loaded|non-parseable pom|malformed pom|non-readable pom|the build could not read|non-resolvable parent pom: malformed|unrecognised tag|xml parse|unparseable xml|saxparseexception|xmlpullparserexception"),
	when(ConfigSyntax, syntax, "could not compile settings file|could not compile build file|build.gradle': ", "unexpected|unable to resolve class|expecting"),
	when(ConfigSyntax, syntax, "could not compile build file|could not compile settings file|script compilation error"),
	when(ConfigSyntax, syntax, "errors parsing go.mod|errors parsing go.work|go.mod:", "unknown directive|syntax error|usage:|invalid go version|malformed|unexpected|parsing|must be of the form").unless("@v"),
	when(ConfigSyntax, syntax, "errors parsing go.mod|errors parsing go.work"),
	when(ConfigSyntax, syntax, "invalid requirement: |invalidrequirement|requirementparseerror|invalid requirement at|expected end or semicolon|couldn't parse requirement|error: invalid requirement|requirements file", "parse|invalid|expected|error").unless("hashes", "could not open"),
	when(ConfigSyntax, syntax, "invalidversionspec|invalid version spec|invalid version specification|error: invalid version|eentrypoint invalid|einvalidpackagename|invalid package name|einvalidtagname|invalid tag name"),
	when(ConfigSyntax, syntax, "specnotfound", "environment.yml|condaenv|yaml").unless("can't process", "does not exist"),
	when(ConfigSyntax, syntax, "there was an error parsing `gemfile`|[!] there was an error"),
	when(ConfigSyntax, syntax, "configparser.|missingsectionheadererror|error in setup.cfg|error in ", "setup command:").unless("use_2to3"),
	when(ConfigSyntax, syntax, "invalid configuration file|syntax error in config|failed to parse config|error parsing config|failed to load config|configuration file is invalid|malformed entry|malformed line|type 'deb' is not known|the list of sources could not be read"),
	when(ConfigSyntax, syntax, "composer.json", "does not match the expected json schema|syntax error|is invalid"),
	when(ConfigSyntax, syntax, "cargo.toml", "expected|invalid|duplicate key|unclosed|parse"),
	when(ConfigSyntax, syntax, "package.json", "parse|unexpected token|invalid").unless("parser"),
	when(ConfigSyntax, syntax, "pnpm-lock.yaml|yarn.lock|package-lock.json|poetry.lock|uv.lock", "broken|invalid|parse|corrupt|merge conflict"),
	when(ConfigSyntax, syntax, "err_pnpm_json_parse|err_pnpm_broken_lockfile|err_pnpm_bad_package_json|err_pnpm_invalid"),
	when(ConfigSyntax, syntax, "illformed requirement|can't parse package.swift|should not contain uppercase characters|invalid serialized packageid|unexpected end of statement while looking|specified can not be an empty string|using copy with more than one source file|error parsing file|bad config line|bad configuration option|fatal: bad config"),

	// Versions that do not go together.
	when(VersionConflict, conflict, "resolutionimpossible|conflicting dependencies|dependency conflict|conflicting requirements|versionconflict|contextualversionconflict|pip._internal.exceptions.distributionnotfound"),
	when(VersionConflict, vague, "has requirement ", "but you"),
	when(VersionConflict, conflict, "cannot install ", "because these package versions have conflicting"),
	when(VersionConflict, conflict, " depends on ", "which doesn't match any versions|version solving failed|incompatible"),
	when(VersionConflict, conflict, "because only ", "version|project|solv|depend|<|>").unless("was not found", "no versions of"),
	when(VersionConflict, conflict, "version solving failed|solverproblemerror"),
	when(VersionConflict, conflict, "depends on", "requirements are unsatisfiable").unless("was not found in the package registry", "there are no versions of", "there is no version of"),
	when(PackageNotFound, missing, "was not found in the package registry|there are no versions of|there is no version of"),
	when(VersionConflict, vague, "no solution found when resolving"),
	when(VersionConflict, conflict, "found conflicts!|incompatible specs|package conflicts|dependency missing in current|were found to be in conflict|but none of the providers can be installed|is not installable because"),
	when(VersionConflict, vague, "unsatisfiableerror|libmambaunsatisfiable|could not solve for environment specs"),
	when(PackageNotFound, missing, "does not exist (perhaps a typo|nothing provides requested"),
	when(VersionConflict, conflict, "eresolve|conflicting peer dependency|could not resolve dependency:|fix the upstream dependency conflict|err_pnpm_peer_dep"),
	when(VersionConflict, conflict, "epeerinvalid|ebadengine|err_pnpm_unsupported_engine|unsupported engine|the engine \"|found incompatible module|not compatible with your version of node|notsup").unless("npm warn", "warning "),
	when(VersionConflict, conflict, "peerinvalid|ebadplatform|unsupported platform for").unless("npm warn", "optional", "skipping"),
	when(VersionConflict, conflict, "your lockfile needs to be updated|npm ci` can only install|err_pnpm_outdated_lockfile|lock file is not up to date|lock file's ", "package|npm|lockfile|frozen"),
	when(VersionConflict, conflict, "pyproject.toml changed significantly since poetry.lock|poetry.lock is not up to date|lockfile is out of date|lock file needs to be updated|lockfile at `uv.lock` needs|would have changed lockfile|pipfile.lock", "out of date|update|changed|lock"),
	when(VersionConflict, conflict, "yn0028: |lockfile would have been|lockfile had changes|lockfile is frozen|lock file is frozen"),
	when(VersionConflict, conflict, "lock file|lockfile|.lock", "needs to be updated|out of date|out-of-date|not up to date|not up-to-date|out of sync|not in sync|not in synce|is outdated|--locked|does not match|doesn't match").unless("could not get lock", "warn", "http"),
	when(VersionConflict, conflict, "resolutionfailure|dependency resolution failed|is not present in the lock file|dependencies could not be resolved. you likely have a mismatch|is not in the allowed range"),
	when(VersionConflict, conflict, "frozen-lockfile", "not up to date|outdated|fail|differ"),
	when(VersionConflict, conflict, "requires a different python").unless("found link"),
	when(VersionConflict, conflict, "requires python '", "but"),
	when(VersionConflict, conflict, "requires-python|requires python|python_requires|python version", "not compatible|does not satisfy|is not supported|unsupported|not allowed|incompatible|different|drop support|current python|but you|or later|or newer|>=").unless("warning", "found link", "satisfied", "collecting", "skipped"),
	when(VersionConflict, conflict, "python ", " or later is required|or newer is required| or higher is required|or above is required|is required but"),
	when(VersionConflict, conflict, "this version of ", "requires|only supports|does not support|not compatible").unless("warn"),
	when(VersionConflict, conflict, "requires ruby version|your ruby version is|requires rubygems version|bundler could not find compatible versions|your bundle is locked to|which is incompatible with the|gem::conflicterror|you must use bundler"),
	when(VersionConflict, conflict, "your requirements could not be resolved to an installable set|conflicts with your requirements|your php version|does not satisfy that requirement"),
	when(VersionConflict, conflict, "you have held broken packages|unmet dependencies|but it is not going to be installed|but it is not installable|conflicts with file from|breaks: "),
	when(VersionConflict, conflict, "version", "conflict").unless("git", "merge conflict", "warn"),
	when(VersionConflict, conflict, "dependency convergence error|could not resolve version conflict|cannot find a version of", "that satisfies|conflict|converg|version"),
	when(VersionConflict, conflict, "unsupported class file major version|unsupported major.minor|class file has wrong version|invalid target release|invalid source release|release version "),
	when(VersionConflict, conflict, "no matching variant|incompatible because this component declares|was compiled with an incompatible version of kotlin|requires at least jvm|gradle requires jvm|minimum supported gradle version|requires gradle|requires java|requires a jdk|requires jdk").unless("javascript"),
	when(PackageNotFound, missing, "failed to select a version for the requirement|candidate versions found which didn't match"),
	when(VersionConflict, conflict, "failed to select a version for|rustc ", "is not supported by|requires rustc|possible versions|select a version|or newer").unless("compiling", "checking", "for the requirement"),
	when(VersionConflict, conflict, "feature `edition20|requires rustc|is not stable in this version of cargo|older than the `|package requires rustc|lock file version "),
	when(VersionConflict, conflict, "go.mod requires go >=|module requires go 1.|requires go >= |requires go1.|note: module requires go|invalid go version|ambiguous import|but was required as:|module declares its path as|updates to go.mod needed|is explicitly required in go.mod|inconsistent vendoring|requires newer go version"),
	when(VersionConflict, conflict, "does not support targeting|a compatible sdk version|netsdk1045|nu1107|nu1605|nu1608|package downgrade|is not compatible with net|a compatible installed .net"),
	when(VersionConflict, conflict, "requires node|is installed but ", "required"),
	when(VersionConflict, conflict, "requires node|bad go version|it supports only|declared in its mix.exs|outdated shard.lock|minimum swift tools version|dependency graph is unresolvable|because no versions of"),
	when(VersionConflict, conflict, "cmake ", "or higher is required"),
	when(VersionConflict, conflict, "version `glibc|version `glibcxx", "not found"),
	when(VersionConflict, conflict, "incompatible", "version").unless("warning"),

	// Packages that are not there.
	when(PackageNotFound, missing, "unable to locate package|has no installation candidate|couldn't find any package|couldn't find package|package not found|no package matches|no such package"),
	when(PackageNotFound, missing, "version '", "was not found"),
	when(PackageNotFound, missing, "release '", "was not found"),
	when(PackageNotFound, missing, "does not have a release file|no longer has a release file"),
	when(PackageNotFound, missing, "404  not found|404 not found|404: not found|status code 404|http error 404|404 client error|http 404|e404|status code: 404|not found - get|statuscode=404|response code 404|returned error: 404"),
	when(PackageNotFound, missing, "error 404|error: 404|status 404|code 404|(404)", httpWords),
	when(PackageNotFound, missing, "410 gone|410  gone|error 410|error: 410|httperror404|referenced package was not found"),
	when(PackageNotFound, missing, "there is no '", "' package available"),
	when(PackageNotFound, missing, "unsatisfiable constraints|(missing):|(no such package):|unable to select packages"),
	when(PackageNotFound, missing, "no matching version found for|notarget|etarget|err_pnpm_no_matching_version|err_pnpm_fetch_404|couldn't find any versions for|is not in the npm registry|is not in this registry|no candidates found"),
	when(PackageNotFound, missing, "no package ", " available").unless("optional"),
	when(PackageNotFound, missing, "error: nothing to do|unable to find a match|no match for argument|no packages marked for|nothing provides"),
	when(PackageNotFound, missing, "package '", "' not found|, required by '"),
	when(PackageNotFound, missing, "packagesnotfounderror|packagenotfounderror|packages are not available from current channels|nothing provides|resolvepackagenotfound|packagemissingerror|no packages found in current"),
	when(PackageNotFound, missing, "could not find artifact|could not find ", "in any of the sources|in central|artifact|any matches for|any version that matches|required by your"),
	when(PackageNotFound, missing, "no versions available for|was not found in ", "during a previous attempt|central|maven|repo"),
	when(PackageNotFound, missing, "could not resolve dependencies for project|plugin [id:", "was not found|not found|could not"),
	when(PackageNotFound, missing, "plugin ", " or one of its dependencies could not be resolved"),
	when(PackageNotFound, missing, "could not find method|could not resolve all", "artifacts|dependencies|files|task dependencies"),
	when(PackageNotFound, missing, "cannot find package|cannot find module providing package|no required module provides package|unrecognized import path|unknown revision|module ", "in any of|cannot find|but does not contain package|no required|unrecognized|unknown revision|found, but").unless("warning"),
	when(PackageNotFound, missing, "has no known version|statuscode = 404|no matching versions for query|is not in std|is not in goroot|missing go.sum entry|cannot find module for path"),
	when(PackageNotFound, missing, "repository ", "not found").unless("docker"),
	when(PackageNotFound, missing, "could not read username for"),
	when(PackageNotFound, missing, "no matching package named|no matching package found|perhaps you meant:"),
	when(PackageNotFound, missing, "could not find gem|gem::gemnotfound|could not find a valid gem|bundler::gemnotfound|gemnotfoundexception"),
	when(PackageNotFound, missing, "unable to find installation candidates|yn0035: |yn0082: |yn0027: "),
	when(PackageNotFound, missing, "could not find package|could not find a matching version of package|requested package "),
	when(PackageNotFound, missing, "pathspec '", "did not match any file|remote branch|couldn't find remote ref"),
	when(PackageNotFound, missing, "remote branch ", "not found"),
	when(PackageNotFound, missing, "cannot locate remote-tracking branch|failed to find branch|failed to find tag|could not find tag|revspec '"),
	when(PackageNotFound, missing, "dependency \"|dependency '|dependency `", "not found|does not exist|cannot be found"),
	when(PackageNotFound, missing, "error: target not found: |no package with name "),
	when(PackageNotFound, missing, "get http", " - 404|: 404"),
	when(PackageNotFound, missing, "nu1101|nu1102|unable to find package|unable to find version"),
	when(PackageNotFound, missing, "distributionnotfound|distribution was not found and is required by|could not find suitable distribution"),
	when(PackageNotFound, missing, "dependencies ", "are not available|is not available"),
	when(PackageNotFound, missing, "cannot add ppa|is not available for package|package ‘"),
	when(PackageNotFound, missing, "not available, but is referred to by another package"),
	when(PackageNotFound, missing, "no version is set|no such version|unknown package:|package ", "does not exist|not found in|cannot be found|couldn't be found|could not be found|not found on").unless("javac", ".java", "error: package"),
	when(PackageNotFound, absent, "no matching distribution found|could not find a version that satisfies|could not find any downloads|no distributions at all found|no local packages or working download links found|no distributions matching"),
	when(PackageNotFound, vague, "modulenotfounderror|no module named|cannot find module '|cannot find module \"|err_module_not_found").unless("module '.", "module \".", "module '/", "module \"/"),
	when(PackageNotFound, vague, "failed to fetch", "not found"),

	// The commonest of these in other languages: German, French, Spanish,
	// Portuguese, Japanese, Chinese.
	when(Resource, exhausted, "kein speicherplatz mehr|aucun espace disponible|no queda espacio en el dispositivo|não há espaço disponível|空き領域がありません|设备上没有空间|設備上沒有空間"),
	when(Resource, exhausted, "nicht genügend hauptspeicher|kann keinen speicher allozieren|impossible d'allouer de la mémoire|no se pudo asignar memoria|não foi possível alocar memória|メモリを確保できません|メモリを割り当てることができません|无法分配内存"),
	when(Lock, locked, "konnte sperre|impossible d'obtenir le verrou|no se pudo bloquear|não foi possível obter trava|ロックを取得できません|フロントエンドロック|无法获得锁|無法取得 lock"),
	when(Lock, locked, "ロック", "取得できません"),
	when(Network, broken, "temporärer fehler beim auflösen|erreur temporaire de résolution|fallo temporal al resolver|falha temporária ao resolver|一時的に解決できません|暂时不能解析域名|暫時性解析失敗"),
	when(Network, broken, "verbindung ist abgelaufen|zeitüberschreitung|délai d'attente|délai de connexion dépassé|se agotó el tiempo|tempo esgotado|接続がタイムアウト|连接超时|連線逾時"),
	when(PackageNotFound, missing, "paket ", "kann nicht gefunden werden|konnte nicht gefunden werden"),
	when(PackageNotFound, missing, "impossible de trouver le paquet|no se ha podido localizar el paquete|impossível encontrar o pacote|无法定位软件包|找不到套件"),
	when(PackageNotFound, missing, "パッケージ", "見つかりません|はインストール候補がありません"),
}
