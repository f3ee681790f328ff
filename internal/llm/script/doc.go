// Package script is a model that follows a script: a YAML file of rules, each
// with what has to be the case and what is answered then. It serves the demo,
// the tests and people who write scenarios. It needs no account and answers the
// same each time.
//
// [Model] is the script as a [llm.Model] in this process. [Server] speaks the
// wire formats of Anthropic (Messages), OpenAI (Chat Completions and Responses)
// and Gemini over HTTP, streamed and whole, so that the real adapters can be
// exercised end to end. It checks requests as the vendors do and refuses what
// they would refuse. Both record every request. [Serve] is the server in one
// call.
//
// A script file:
//
//	model: demo                      # the name under which it answers
//	rules:
//	  - name: plan                   # for the record and for messages
//	    when:                        # all of what is given must hold
//	      phase: planning            # the phase from which the request comes
//	      system: Toryo              # the system prompt contains this
//	      last: failing test         # the last message contains this
//	      last_matches: 'port (\d+)' # the last message matches this
//	      tool: read                 # the last message has a result of this tool
//	      failed: true               # … and that result is (not) an error
//	      turn: 1                    # so many answers were given before, plus one
//	    times: 1                     # the rule is used up after this; 0 is never
//	    answer:
//	      thinking: …
//	      redacted: true             # it thinks, and what it thinks is not told
//	      text: The port is ${1}.    # groups of last_matches; ${turn}; $$ is $
//	      calls:
//	        - {name: read, arguments: {path: go.mod}}
//	        - {name: read, raw: '{"path": ', id: x1}   # arguments as they are
//	      stop: end                  # end, calls, max_tokens or refusal
//	      delay: 100ms               # before the answer begins
//	      pace: 5ms                  # between its pieces
//	      cut: 3                     # the connection breaks after so many pieces
//	      error: {status: 429, type: rate_limit_error, message: slow down,
//	              retry_after: 2s, after: 0}   # after: pieces before the error
//	      usage: {input: 10, cached: 0, output: 5, reasoning: 2}   # otherwise estimated
//
// The first rule that holds and is not used up answers. When none does, the
// request is refused and the message says what was asked. "turn" and what the
// rules look at come from the request alone, so that a run that goes on after a
// crash meets the right rule; only "times" is remembered, for each run by itself.
package script
