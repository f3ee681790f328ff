// Package cloud reaches the models of Anthropic, OpenAI and Google where companies have them:
// at Amazon Bedrock, Azure OpenAI and Google Vertex. The adapters of the vendors speak as ever.
// What a cloud has different is put between them and the network:
//
//	Bedrock   the Anthropic adapter: another path and body, the event stream of AWS as server-sent events
//	Vertex    the Anthropic and the Gemini adapter: another path and body
//	Azure     the OpenAI adapter: another path
//	Named     gives errors the name of the cloud, and says how to fix them
//
// Who asks is shown by a key, by a signature (SigV4) or by a token that is fetched and kept until
// it ends. Requests for tokens are bounded in time and size, follow no redirect, and go to
// addresses of a machine's metadata only if that is configured.
package cloud
