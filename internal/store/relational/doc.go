// Package relational is the persistence port in SQL that SQLite and PostgreSQL
// both understand. Every query is here once; package sqlite and package postgres
// only open their databases and say, as a [Dialect], in what little they differ.
//
// How things are kept:
//
//   - Ids are UUIDs of version 7, so that the order of ids is the order in which
//     things were made.
//   - Moments are microseconds since 1970. The zero time is one of them, and
//     earlier than every other.
//   - Sequences without gaps (positions of events, order of writes to an item,
//     numbers on the board) are rows of the table counters. Drawing from one
//     locks its row until the transaction ends, which is what gives the order.
//   - A row is locked before it is changed. The order in which locks are taken
//     is: tasks, then counters of events, then counters of items, then actions.
package relational
