# Draws lines of "milliseconds<TAB>text" as a terminal in SVG. It is animated by CSS
# alone: a cover moves down as long as lines fit, and then the lines move up. Where
# nothing is animated, the last lines are seen.
BEGIN {
  FS = "\t"
  columns = 102; rows = 28; cell = 7.23; height = 17; pad = 14; bar = 30
  longest = 1000; shortest = 220; hold = 6000 # of the shown time, in milliseconds
  add(0, "$ toryo demo", "prompt")
}

# add puts a line at the end, and goes on below where it is too long.
function add(at, text, class,    cut) {
  while (length(text) > columns) {
    for (cut = columns; cut > columns / 2 && substr(text, cut, 1) != " "; cut--);
    if (cut <= columns / 2) cut = columns
    put(at, substr(text, 1, cut), class)
    text = "      " substr(text, cut + 1)
  }
  put(at, text, class)
}

function put(at, text, class) {
  count++
  clock[count] = at; shown[count] = text; kind[count] = class
}

function escaped(text) {
  gsub(/&/, "\\&amp;", text)
  gsub(/</, "\\&lt;", text)
  gsub(/>/, "\\&gt;", text)
  return text
}

# kindOf says how a line is coloured.
function kindOf(text) {
  if (text ~ /^== /) return "phase"
  if (text !~ /^   \| / && text != "") diff = text == "Its diff:"
  if (diff && text ~ /^   \| \+/) return "added"
  if (diff && text ~ /^   \| -/) return "removed"
  if (diff && text ~ /^   \| (@@|diff |index )/) return "dim"
  if (text ~ /^(Issue|Hanako|Pull request|Done in)/ || text ~ / reviews it: /) return "person"
  return ""
}

{ at = $1; sub(/^[0-9]+\t/, ""); gsub(/\t/, "    "); add(at, $0, kindOf($0)) }

END {
  for (i = 1; i <= count; i++) {
    gap = i == 1 ? 400 : clock[i] - clock[i - 1]
    time += gap > longest ? longest : (gap < shortest ? shortest : gap)
    when[i] = time
  }
  whole = time + hold
  width = int(columns * cell) + 2 * pad + 60
  inside = rows * height
  last = count > rows ? (count - rows) * height : 0

  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title\">\n", \
    width, inside + bar + 2 * pad, width, inside + bar + 2 * pad
  print "<title id=\"title\">toryo demo: from an issue to a reviewed pull request</title>"
  print "<style>"
  print "  text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d5dae1; white-space: pre }"
  print "  .prompt { fill: #ffffff; font-weight: bold } .phase { fill: #6cb6ff; font-weight: bold } .person { fill: #f2cc60 }"
  print "  .added { fill: #6bc46d } .removed { fill: #f47067 } .dim, .clock { fill: #8b949e }"
  printf "  #lines { animation: scroll %.2fs step-end infinite } #cover { animation: cover %.2fs step-end infinite }\n", whole / 1000, whole / 1000
  frames("scroll", 1)
  frames("cover", 0)
  print "  @media (prefers-reduced-motion: reduce) { #lines, #cover { animation: none } }"
  print "</style>"
  printf "<rect x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#1c2128\" stroke=\"#768390\"/>\n", width - 1, inside + bar + 2 * pad - 1
  for (i = 0; i < 3; i++)
    printf "<circle cx=\"%d\" cy=\"%d\" r=\"5\" fill=\"#545d68\"/>\n", pad + 6 + 18 * i, bar / 2 + 2
  printf "<svg x=\"0\" y=\"%d\" width=\"%d\" height=\"%d\">\n", bar + pad / 2, width, inside + 1
  printf "<g id=\"lines\" xml:space=\"preserve\" transform=\"translate(0 %d)\">\n", -last
  for (i = 1; i <= count; i++) {
    if (shown[i] == "") continue
    printf "<text x=\"%d\" y=\"%d\"%s>%s</text>\n", pad, (i - 1) * height + 13, \
      kind[i] == "" ? "" : " class=\"" kind[i] "\"", escaped(shown[i])
    if ((kind[i] == "phase" || kind[i] == "person") && shown[i] !~ /^ /)
      printf "<text x=\"%d\" y=\"%d\" class=\"clock\" text-anchor=\"end\">%.1f s</text>\n", width - pad, (i - 1) * height + 13, clock[i] / 1000
  }
  print "</g>"
  printf "<rect id=\"cover\" x=\"1\" width=\"%d\" height=\"%d\" fill=\"#1c2128\" transform=\"translate(0 %d)\"/>\n", width - 2, inside + height, inside + 1
  print "</svg>"
  print "</svg>"
}

# frames writes the steps of an animation: of the lines when they move, or of the
# cover.
function frames(name, moves,    i, from, to, offset) {
  printf "  @keyframes %s { 0%% { transform: translateY(0px) }", name
  from = moves ? rows + 1 : 1
  to = moves ? count : (count < rows ? count : rows)
  for (i = from; i <= to; i++) {
    if (i < to && when[i + 1] == when[i]) continue
    offset = moves ? -(i - rows) * height : i * height
    if (!moves && i == to) offset = inside + 1
    printf " %.2f%% { transform: translateY(%dpx) }", 100 * when[i] / whole, offset
  }
  printf " 100%% { transform: translateY(%dpx) } }\n", offset
}
