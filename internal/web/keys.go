package web

// goKeys are the letters that lead to a place, after g. A place that has none is only in the
// header.
var goKeys = map[string]string{
	"/": "h", "/queue": "q", "/agents": "a", "/board": "b", "/reviews": "r", "/statistics": "n", "/connect": "c", "/settings": "s", "/docs": "d",
}
