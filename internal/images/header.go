package images

import (
	"bytes"
	"encoding/binary"
	"image"
	"sync"

	_ "image/gif" // to tell and decode them
	_ "image/jpeg"
	_ "image/png"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// mostPixels is the most that an image may have on one side: the vendors take no more.
	mostPixels = 8000
	// mostInAll is the most that it may have altogether. It bounds what decoding it takes: at
	// most eight bytes for each.
	mostInAll = 16 << 20
)

// decoding lets one image at a time be decoded, so that the memory for it is bounded.
var decoding sync.Mutex

// header is what the first bytes of an image say.
type header struct {
	kind          string
	width, height int
}

// readImage tells what image the bytes are, by nothing but themselves. A broken one is an error:
// vendors refuse a whole request for it.
func readImage(data []byte) (header, error) {
	h, err := readHeader(data)
	if err != nil {
		return header{}, err
	}
	if h.width < 1 || h.height < 1 || h.width > mostPixels || h.height > mostPixels || h.width*h.height > mostInAll {
		return header{}, task.Errorf(task.TooLarge, "it has %d×%d pixels; at most %d are taken on a side, and %d in all", h.width, h.height, mostPixels, mostInAll)
	}
	if h.kind == "image/webp" {
		if len(data) < 8+int(binary.LittleEndian.Uint32(data[4:])) {
			return header{}, task.Errorf(task.Invalid, "it is cut off")
		}
		return h, nil
	}
	decoding.Lock()
	defer decoding.Unlock()
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
		return header{}, task.Wrap(task.Invalid, err, "it is broken")
	}
	return h, nil
}

// readHeader tells what the first bytes say.
func readHeader(data []byte) (header, error) {
	var h header
	if width, height, ok := webp(data); ok {
		h = header{"image/webp", width, height}
	} else {
		config, format, err := image.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			return header{}, task.Errorf(task.Invalid, "it is no PNG, JPEG, GIF or WebP image")
		}
		h = header{"image/" + format, config.Width, config.Height}
	}
	return h, nil
}

// webp reads the size of a WebP image, of each of its three forms.
func webp(data []byte) (width, height int, ok bool) {
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0, false
	}
	switch string(data[12:16]) {
	case "VP8 ":
		if !bytes.Equal(data[23:26], []byte{0x9d, 0x01, 0x2a}) {
			return 0, 0, false
		}
		const sides = 0x3fff
		return int(binary.LittleEndian.Uint16(data[26:])) & sides, int(binary.LittleEndian.Uint16(data[28:])) & sides, true
	case "VP8L":
		const sides = 0x3fff
		bits := binary.LittleEndian.Uint32(data[21:])
		return int(bits&sides) + 1, int(bits>>14&sides) + 1, data[20] == 0x2f
	case "VP8X":
		return 1 + int(data[24]) + int(data[25])<<8 + int(data[26])<<16, 1 + int(data[27]) + int(data[28])<<8 + int(data[29])<<16, true
	}
	return 0, 0, false
}
