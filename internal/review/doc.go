// Package review keeps reviews and talks with people about them.
//
//	Mentions    the sections that a message names
//	Specified   those sections and their neighbours, out of the answer
//	Compose     the conversation as the model is given it
//	Citations   what an answer cites, and whether it stands there
//	Service     questions, reviews and threads, and who may see them
//	Turn        a message that is being answered; anyone may follow it
//	Watch       reviews on a forge: what people reply there is answered there
//
// What the model is given besides the messages is made anew for each turn and
// never kept. The prompts are files beside the code, one for each language.
package review
