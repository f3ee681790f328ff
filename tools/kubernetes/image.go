package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"runtime"
)

// writeImage writes an image of one layer, the folder with everything in it, in
// the form in which docker saves images and containerd imports them.
func writeImage(arguments []string) error {
	if len(arguments) < 3 {
		return errors.New("usage: image NAME:TAG FOLDER FILE [COMMAND...]")
	}
	name, folder, file, command := arguments[0], arguments[1], arguments[2], arguments[3:]
	var layer bytes.Buffer // the images of tests are small
	packed := tar.NewWriter(&layer)
	if err := packed.AddFS(os.DirFS(folder)); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	settings, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": command, "Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer.Bytes())}},
	})
	if err != nil {
		return err
	}
	settingsFile := digest(settings) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": settingsFile, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	made, err := os.Create(file)
	if err != nil {
		return err
	}
	image := tar.NewWriter(made)
	for _, part := range []struct {
		name    string
		content []byte
	}{{settingsFile, settings}, {"manifest.json", manifest}, {"layer.tar", layer.Bytes()}} {
		if err := image.WriteHeader(&tar.Header{Name: part.name, Mode: 0o644, Size: int64(len(part.content))}); err != nil {
			return err
		}
		if _, err := image.Write(part.content); err != nil {
			return err
		}
	}
	return errors.Join(image.Close(), made.Close())
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
