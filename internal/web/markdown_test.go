package web

import (
	"strings"
	"testing"
)

// Addresses and items in what people write lead there, and only there.
func TestLinksInTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see http://localhost:8750/board/a/b.":        `href="http://localhost:8750/board/a/b"`,
		"http://127.0.0.1:8750/x、https://例え":          `href="http://127.0.0.1:8750/x"`,
		"https://example.org/a?b=c#d":                 `href="https://example.org/a?b=c#d"`,
		"Closes #7.":                                  `Closes <a href="/board/team/app/items/7">#7</a>.`,
		"#7":                                          `<a href="/board/team/app/items/7">#7</a>`,
		"（#7）":                                        `（<a href="/board/team/app/items/7">#7</a>）`,
		"`#7` x#7 #07 #7a https://example.org/ #":     "",
		"[#7](https://example.org)":                   `href="https://example.org"`,
		"ftp://example.org javascript:alert(1) //x":   "",
		"<a href=\"https://evil.example\">#</a>":      "",
		"[x](/signout) [y](data:text/html,x) [z](#a)": "",
	} {
		var page strings.Builder
		if err := itemMarkdown("team/app", text).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		if want == "" && strings.Contains(page.String(), "items/") || want != "" && !strings.Contains(page.String(), want) {
			t.Errorf("%q becomes %s", text, page.String())
		}
		for _, bad := range []string{`href="javascript`, `href="data`, `href="/signout`, `evil.example"`, "//x\"", `href="ftp`} {
			if strings.Contains(page.String(), bad) {
				t.Errorf("%q becomes %s", text, page.String())
			}
		}
	}
}
