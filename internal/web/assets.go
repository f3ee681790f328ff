package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toryo-dev/toryo/internal/task"
)

//go:embed assets/*
var assetFiles embed.FS

// asset is a file that pages load. Its address changes with its content, so that
// browsers can keep it for good.
type asset struct {
	content []byte
	path    string
}

const (
	styleAsset  = "style.css"
	scriptAsset = "pages.js"
	keysAsset   = "keys.js"
	notifyAsset = "notify.js"
	taskAsset   = "task.js"
	iconAsset   = "icon.svg"
	// reviewsAsset is the script of the pages about reviews, besides that of all pages.
	reviewsAsset = "reviews.js"
)

var assets = sync.OnceValue(func() map[string]asset {
	all := make(map[string]asset)
	for _, name := range []string{styleAsset, scriptAsset, keysAsset, notifyAsset, taskAsset, iconAsset, reviewsAsset} {
		content, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic("an embedded asset is missing: " + name)
		}
		sum := sha256.Sum256(content)
		all[name] = asset{content, "/assets/" + hex.EncodeToString(sum[:6]) + "/" + name}
	}
	return all
})

// keepForGood lets browsers keep what is at an address that changes with its content.
const keepForGood = "public, max-age=31536000, immutable"

func assetPath(name string) string { return assets()[name].path }

func (p *Pages) registerAssets(mux *http.ServeMux) {
	mux.HandleFunc("GET /assets/{sum}/{name}", func(w http.ResponseWriter, r *http.Request) {
		found, known := assets()[r.PathValue("name")]
		if !known || found.path != r.URL.Path {
			p.fail(w, r, p.stranger(r), task.Errorf(task.NotFound, "there is no such file"))
			return
		}
		w.Header().Set("Cache-Control", keepForGood)
		http.ServeContent(w, r, found.path[strings.LastIndex(found.path, "/"):], time.Time{}, bytes.NewReader(found.content))
	})
}
