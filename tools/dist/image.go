package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

// imageUser is the user that containers run as. It is the one that images without a shell
// usually have.
const imageUser = 65532

// imageName is what an engine calls the image when it was loaded.
const imageName = "localhost/toryo:"

// writeImages writes an image for each architecture of Linux, as an archive of an OCI layout
// that docker load and ctr images import take.
func (r *release) writeImages(ctx context.Context) error {
	if r.image == noImage {
		return nil
	}
	if r.image == imageWithPackages && r.debs == "" {
		r.debs = filepath.Join(r.work, "debs")
		if err := fetchDebian(ctx, r.debs, r.options); err != nil {
			return err
		}
	}
	r.debian = map[string][]debianPackage{}
	for _, arch := range architectures(r.targets) {
		layers, err := r.layers(ctx, arch)
		if err != nil {
			return err
		}
		content, err := r.writeLayout(arch, layers)
		if err != nil {
			return err
		}
		if err := r.add(r.named("image_linux_"+arch+".tar"), content); err != nil {
			return err
		}
	}
	if r.image == imageProgramOnly {
		fmt.Fprintln(r.log, "the images have the program alone: without git no task can be done in them")
		return nil
	}
	return r.writePackageList()
}

// writePackageList writes which Debian packages the images were made from, as sha256sum
// --check reads it in a folder that dist debian has made.
func (r *release) writePackageList() error {
	var text bytes.Buffer
	for _, arch := range slices.Sorted(maps.Keys(r.debian)) {
		for _, one := range r.debian[arch] {
			fmt.Fprintf(&text, "%s  %s\n", one.digest, one.file)
		}
	}
	return r.add(r.named("image_packages.txt"), text.Bytes())
}

// layer is what an image adds, in order. The one that changes least comes first.
type layer struct {
	about   string
	entries []entry
}

func (r *release) layers(ctx context.Context, arch string) ([]layer, error) {
	var layers []layer
	if r.image == imageWithPackages {
		found, err := findDebian(ctx, r.debs, arch)
		if err != nil {
			return nil, err
		}
		base := tree{}
		for _, one := range found {
			if err := base.addDebian(ctx, one); err != nil {
				return nil, err
			}
		}
		if err := base.finish(); err != nil {
			return nil, err
		}
		vendor, number := base.distribution()
		for i := range found {
			found[i].vendor, found[i].distribution = vendor, vendor+"-"+number
		}
		r.debian[arch] = found
		layers = append(layers, layer{"Debian packages", slices.Collect(maps.Values(base))})
	}
	return append(layers, layer{"toryo " + r.version, r.programEntries(arch)}), nil
}

// programEntries are the program, its user and the folders that it writes to.
func (r *release) programEntries(arch string) []entry {
	user := fmt.Sprintf("root:x:0:0:root:/root:/usr/sbin/nologin\ntoryo:x:%[1]d:%[1]d:toryo:/data:/usr/sbin/nologin\n", imageUser)
	group := fmt.Sprintf("root:x:0:\ntoryo:x:%d:\n", imageUser)
	program := r.programs[target{"linux", arch}]
	return []entry{
		{name: "usr/local/bin/toryo", mode: 0o755, content: program.content},
		{name: "usr/local/bin/" + guestName, mode: 0o755, content: program.guest.content},
		{name: "usr/share/doc/toryo/copyright", content: r.document("LICENSE")},
		{name: "usr/share/doc/toryo/" + thirdPartyFile, content: r.document(thirdPartyFile)},
		{name: "etc/passwd", content: []byte(user)},
		{name: "etc/group", content: []byte(group)},
		{name: "etc/nsswitch.conf", content: []byte("passwd: files\ngroup: files\nhosts: files dns\n")},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{name: "data", mode: fs.ModeDir | 0o700, owner: imageUser},
	}
}

// withFolders adds the folders that entries are in, where they are not among them.
func withFolders(entries []entry) []entry {
	known := map[string]bool{".": true}
	for _, e := range entries {
		known[e.name] = true
	}
	for _, e := range entries {
		for folder := path.Dir(e.name); !known[folder]; folder = path.Dir(folder) {
			known[folder] = true
			entries = append(entries, entry{name: folder, mode: fs.ModeDir | 0o755})
		}
	}
	return entries
}

// blobs are the parts of a layout by digest.
type blobs map[digest.Digest][]byte

func (b blobs) add(kind string, content []byte) oci.Descriptor {
	sum := digest.FromBytes(content)
	b[sum] = content
	return oci.Descriptor{MediaType: kind, Digest: sum, Size: int64(len(content))}
}

func (b blobs) addJSON(kind string, value any) (oci.Descriptor, error) {
	text, err := json.Marshal(value)
	return b.add(kind, text), err
}

func blobPath(d digest.Digest) string { return "blobs/" + d.Algorithm().String() + "/" + d.Encoded() }

// writeLayout makes the archive of an image.
func (r *release) writeLayout(arch string, layers []layer) ([]byte, error) {
	parts := blobs{}
	settings := r.imageSettings(arch)
	manifest := oci.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest}
	for _, one := range layers {
		var plain bytes.Buffer
		if err := writeTar(&plain, sorted(withFolders(one.entries)), r.made); err != nil {
			return nil, err
		}
		content, err := compress(plain.Bytes(), r.level)
		if err != nil {
			return nil, err
		}
		manifest.Layers = append(manifest.Layers, parts.add(oci.MediaTypeImageLayerGzip, content))
		settings.RootFS.DiffIDs = append(settings.RootFS.DiffIDs, digest.FromBytes(plain.Bytes()))
		settings.History = append(settings.History, oci.History{Created: &r.made, CreatedBy: "toryo/tools/dist", Comment: one.about})
	}
	var err error
	if manifest.Config, err = parts.addJSON(oci.MediaTypeImageConfig, settings); err != nil {
		return nil, err
	}
	described, err := parts.addJSON(oci.MediaTypeImageManifest, manifest)
	if err != nil {
		return nil, err
	}
	described.Platform = &oci.Platform{OS: "linux", Architecture: arch}
	// The second is how containerd names what it imports.
	described.Annotations = map[string]string{oci.AnnotationRefName: r.version, "io.containerd.image.name": imageName + r.version}
	return r.packLayout(parts, manifest, described)
}

// packLayout adds the files by which engines find their way in a layout: index.json, and
// manifest.json for those of Docker before version 25.
func (r *release) packLayout(parts blobs, manifest oci.Manifest, described oci.Descriptor) ([]byte, error) {
	index := oci.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageIndex, Manifests: []oci.Descriptor{described}}
	var layers []string
	for _, one := range manifest.Layers {
		layers = append(layers, blobPath(one.Digest))
	}
	older := []map[string]any{{"Config": blobPath(manifest.Config.Digest), "RepoTags": []string{imageName + r.version}, "Layers": layers}}
	entries := []entry{}
	for name, value := range map[string]any{oci.ImageLayoutFile: oci.ImageLayout{Version: oci.ImageLayoutVersion}, oci.ImageIndexFile: index, "manifest.json": older} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: name, content: text})
	}
	for sum, content := range parts {
		entries = append(entries, entry{name: blobPath(sum), content: content})
	}
	var packed bytes.Buffer
	err := writeTar(&packed, sorted(withFolders(entries)), r.made)
	return packed.Bytes(), err
}

// imageSettings say how a container of the image runs.
func (r *release) imageSettings(arch string) oci.Image {
	user := fmt.Sprint(imageUser)
	return oci.Image{
		Created: &r.made, Author: "The Toryo authors", Platform: oci.Platform{OS: "linux", Architecture: arch},
		RootFS: oci.RootFS{Type: "layers"},
		Config: oci.ImageConfig{
			User: user + ":" + user, WorkingDir: "/data", Entrypoint: []string{"/usr/local/bin/toryo"}, Cmd: []string{"serve", "--addr", "0.0.0.0:8750"},
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/data", "TORYO_DATA_DIR=/data"},
			ExposedPorts: map[string]struct{}{"8750/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
			Labels: map[string]string{
				oci.AnnotationTitle: "toryo", oci.AnnotationVersion: r.version, oci.AnnotationRevision: r.commit, oci.AnnotationLicenses: "Apache-2.0",
				oci.AnnotationURL: homepage, oci.AnnotationCreated: r.made.Format(time.RFC3339),
				oci.AnnotationDescription: "A self-hosted coding agent: from an assigned issue to a reviewed pull request",
			},
		},
	}
}

// homepage is of the program, wherever a release of it is built.
const homepage = "https://github.com/toryo-dev/toryo"
