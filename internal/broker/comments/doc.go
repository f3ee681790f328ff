// Package comments keeps the log of comments of each task: what people wrote on the item,
// each version of each comment once, with its position. A run is given the comments that
// are there when it begins, and then what is behind the position that it has taken up.
package comments
