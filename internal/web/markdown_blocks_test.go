package web

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Boxes of task lists and parts that can be folded are shown as people know them.
func TestBoxesAndFolds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"- [x] done\n- [ ] to **do**\n- other": "<ul>\n<li class=\"task\"><label><input type=\"checkbox\" checked=\"\" disabled=\"\"> done</label></li>\n<li class=\"task\"><label><input type=\"checkbox\" disabled=\"\"> to <strong>do</strong></label></li>\n<li>other</li>\n</ul>\n",
		"1. [X] one":                           "<ol>\n<li class=\"task\"><label><input type=\"checkbox\" checked=\"\" disabled=\"\"> one</label></li>\n</ol>\n",
		"- [ ]":                                "<ul>\n<li class=\"task\"><span class=\"box\">☐</span> </li>\n</ul>\n",
		"[x] in a sentence":                    "<p>[x] in a sentence</p>\n",

		"<details>\n<summary>The log</summary>\n\n**bold**\n\n- a\n\n</details>\n\nafter":                           "<details><summary>The log</summary>\n<p><strong>bold</strong></p>\n<ul>\n<li>a</li>\n</ul>\n</details>\n<p>after</p>\n",
		"<details open>\n\ntext\n\n</details>":                                                                      "<details open=\"\">\n<p>text</p>\n</details>\n",
		"<details><summary>a <b>b</b> &lt;c&gt;</summary>text</details>":                                            "<details><summary>a b &lt;c&gt;</summary>\n<p>text</p>\n</details>\n",
		"<details>\n\n<summary>S</summary>\n\ntext\n</details>":                                                     "<details><summary>S</summary>\n<p>text</p>\n</details>\n",
		"<details><summary>1</summary>\n\n<details><summary>2</summary>\n\nx\n\n</details>\n\ny\n\n</details>\n\nz": "<details><summary>1</summary>\n<details><summary>2</summary>\n<p>x</p>\n</details>\n<p>y</p>\n</details>\n<p>z</p>\n",
		"<details>\n<summary>1</summary>\n\na\n\n</details>\n<details>\n<summary>2</summary>\n\nb\n\n</details>":    "<details><summary>1</summary>\n<p>a</p>\n</details>\n<details><summary>2</summary>\n<p>b</p>\n</details>\n",
		"> <details><summary>q</summary>\n>\n> x\n\nafter":                                                          "<blockquote>\n<details><summary>q</summary>\n<p>x</p>\n</details>\n</blockquote>\n<p>after</p>\n",
		"```\n<details>\n```": "<pre><code>&lt;details&gt;\n</code></pre>\n",
	} {
		if got := rendered(t.Context(), t, text); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", text, got, want)
		}
	}
}

// Whatever a text has of these elements, what is made of it is whole, and nothing else
// comes through.
func TestHostileFolds(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"</details>", "</details>\n\n</div></main>", "<details>", "<details>\n\n> <details>\n\n</details>\n\n</details>\n\n</details>", "- <details>\n\n</details>",
		"> <details>\n\n</details>", "<details><summary>", "<summary>x</summary>", "<summary></summary></summary></details>", "<details><summary></details>x</summary>",
		"<details onclick=alert(1) style=x class=menu id=y ontoggle=alert(1) open=x><summary onclick=alert(1)>x</summary></details>",
		"<details><summary><img src=x onerror=alert(1)></summary><script>alert(1)</script><form action=/signout><button>x</button></form></details>",
		"<details><summary>&lt;script&gt;alert(1)&lt;/script&gt;</summary>&lt;img src=x onerror=alert(1)&gt;</details>",
		"<details><!-- <summary> --><summary>x</summary></details>", "<details><textarea></details><script>alert(1)</script>", "<details><plaintext></details>", "<details><svg><style><img src=x onerror=alert(1)></style></svg></details>",
		strings.Repeat("<details>\n\n", 500), strings.Repeat("<details>\n\n", 500) + strings.Repeat("</details>\n\n", 700), strings.Repeat("<details><summary>", 1000), strings.Repeat("</details>", 3000),
		"<details><summary>" + strings.Repeat("<b>x</b>", 5000) + "</summary></details>",
		"<DETAILS><SUMMARY>x</SUMMARY></DETAILS>", "<details/>\n\nx", "<details\n\nopen>",
		"- [x] <details>\n\n</details>", "<label><input type=checkbox name=x form=y value=z><input type=text></label>", "- [x] <input type=text>", "- [ ] <script>alert(1)</script>",
	} {
		page := rendered(t.Context(), t, text)
		checkWhole(t, text, page)
	}
}

// checkWhole checks that every element that begins ends, in order, and that there are no other
// elements and attributes than those that texts may have.
func checkWhole(t *testing.T, text, page string) {
	t.Helper()
	var open []string
	depth := 0
	tokens := html.NewTokenizer(strings.NewReader(page))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		token := tokens.Token()
		switch kind { //nolint:exhaustive // text is text
		case html.StartTagToken:
			for _, attribute := range token.Attr {
				if token.Data == "input" && (attribute.Key == "type" && attribute.Val == "checkbox" || attribute.Key == "checked" || attribute.Key == "disabled") {
					continue
				}
				if fine := token.Data == "details" && attribute.Key == "open" || attribute.Key == "class" && (attribute.Val == "task" || attribute.Val == "box"); !fine {
					t.Errorf("%.200q has %s of %s", text, attribute.Key, token.Data)
				}
			}
			switch token.Data {
			case "input": // has no end
				continue
			case "p", "blockquote", "ul", "li", "details", "summary", "span", "pre", "code", "label":
			default:
				t.Errorf("%.200q has the element %s", text, token.Data)
			}
			if open = append(open, token.Data); token.Data == "details" {
				depth++
			}
			if depth > maxFolds {
				t.Fatalf("%.200q is %d deep", text, depth)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("%.200q ends %s where %v is open: %.300s", text, token.Data, open, page)
			}
			if open = open[:len(open)-1]; token.Data == "details" {
				depth--
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("%.200q leaves %v open", text, open)
	}
}
