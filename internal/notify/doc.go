// Package notify tells people, by webhooks of the services that they read, what waits for
// them: what package broker lists as needs.
//
//	Target     where it is told, in which format and language
//	Sender     sends one message to one target
//	Deliverer  tells each target of each need once
//
// The leader of the servers delivers. What a target was told is in the database, with the key
// of the need, so that neither another leader nor a restart tells it again. Before a message is
// sent it is taken: two servers that both believe to lead do not both send it. A message whose
// outcome nobody knows, because its server ended while it was being sent, is sent again; the
// id of each need is in it.
package notify
