// Package postgres keeps everything in a PostgreSQL database, which any number
// of servers may share.
package postgres
