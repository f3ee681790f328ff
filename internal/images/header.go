package images

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"

	_ "image/gif"  // to tell and decode them
	_ "image/jpeg" // to tell them
	_ "image/png"

	"github.com/toryo-dev/toryo/internal/task"
)

const (
	// mostPixels is the most that an image may have on one side: the vendors take no more.
	mostPixels = 8000
	// mostInAll is the most that it may have altogether. It bounds what decoding it takes: eight
	// bytes for each, and as much again for an interlaced PNG.
	mostInAll = 16 << 20
	// mostScans is how many scans a JPEG may have. Ordinary ones have 1, progressive ones about 10.
	mostScans = 64
)

// decoding has room for one image that is being decoded, so that the memory for it is bounded.
var decoding = make(chan struct{}, 1)

// header is what the first bytes of an image say.
type header struct {
	kind          string
	width, height int
}

// readImage tells what image the bytes are, by nothing but themselves. A broken one is an error:
// vendors refuse a whole request for it. Of JPEG and WebP it is only read whether they are whole.
func readImage(ctx context.Context, data []byte) (header, error) {
	h, err := readHeader(data)
	if err != nil {
		return header{}, err
	}
	if h.width < 1 || h.height < 1 || h.width > mostPixels || h.height > mostPixels || h.width*h.height > mostInAll {
		return header{}, task.Errorf(task.TooLarge, "it has %d×%d pixels; at most %d are taken on a side, and %d in all", h.width, h.height, mostPixels, mostInAll)
	}
	switch h.kind {
	case "image/webp":
		if len(data) < 8+int(binary.LittleEndian.Uint32(data[4:])) {
			err = task.Errorf(task.Invalid, "it is cut off")
		}
	case "image/jpeg":
		err = checkJPEG(data)
	default:
		err = decode(ctx, data)
	}
	if err != nil {
		return header{}, err
	}
	return h, nil
}

// decode fails if an image is broken.
func decode(ctx context.Context, data []byte) error {
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return task.Wrap(task.Unavailable, ctx.Err(), "others are being decoded")
	}
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
		return task.Wrap(task.Invalid, err, "it is broken")
	}
	return nil
}

// checkJPEG fails if a JPEG is cut off, or has more scans than any that is meant to be seen. It is not
// decoded: each scan goes through all pixels, and may take a few bytes only.
func checkJPEG(data []byte) error {
	const startOfScan, endOfImage = 0xda, 0xd9
	scans := 0
	for at := 2; ; { // after the marker of the beginning
		next := bytes.IndexByte(data[at:], 0xff)
		if next < 0 || at+next+1 >= len(data) {
			return task.Errorf(task.Invalid, "it is cut off")
		}
		at += next + 1
		switch marker := data[at]; {
		case marker == endOfImage:
			return nil
		case marker == 0xff: // may be repeated
			continue
		case marker <= 0x01, marker >= 0xd0 && marker <= 0xd7: // in the data of a scan
			at++
			continue
		case marker == startOfScan:
			if scans++; scans > mostScans {
				return task.Errorf(task.TooLarge, "it has more than %d scans", mostScans)
			}
		}
		if at+2 >= len(data) || at+1+int(binary.BigEndian.Uint16(data[at+1:])) > len(data) {
			return task.Errorf(task.Invalid, "it is cut off")
		}
		at += 1 + int(binary.BigEndian.Uint16(data[at+1:])) // the length, and what it counts
	}
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
