package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// Limits of an image that is given to an agent. They fit what models accept: 5 MB in base64, 8,000 pixels.
const (
	ImageBytesMax = 3 << 20
	ImageSideMax  = 8000 // pixels
)

// ErrNotImage is returned for content that has none of the types of ImageType.
var ErrNotImage = errors.New("not a PNG, JPEG, GIF or WebP image")

// ImageType returns the media type of an image from its content: image/png, image/jpeg, image/gif
// or image/webp. It ignores the name. SVG is not accepted, because an SVG document can contain
// programs.
func ImageType(data []byte) (string, error) {
	if len(data) > ImageBytesMax {
		return "", fmt.Errorf("an image of more than %d MiB", ImageBytesMax>>20)
	}
	var size image.Config
	var err error
	var kind string
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		kind = "image/png"
		size, err = png.DecodeConfig(bytes.NewReader(data))
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		kind = "image/jpeg"
		size, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		kind = "image/gif"
		size, err = gif.DecodeConfig(bytes.NewReader(data))
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		kind = "image/webp"
		size, err = webpSize(data)
	default:
		return "", ErrNotImage
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: it begins like %s, but %w", ErrNotImage, kind, err)
	case size.Width < 1 || size.Height < 1:
		return "", fmt.Errorf("%w: it has no pixels", ErrNotImage)
	case size.Width > ImageSideMax || size.Height > ImageSideMax:
		return "", fmt.Errorf("an image of %d by %d pixels; at most %d by %d are accepted", size.Width, size.Height, ImageSideMax,
			ImageSideMax)
	}
	return kind, nil
}

// webpSize reads the size from the first chunk of a WebP file (RFC 9649).
func webpSize(data []byte) (size image.Config, err error) {
	bad := errors.New("its header is not whole")
	if len(data) < 30 || uint64(binary.LittleEndian.Uint32(data[4:]))+8 != uint64(len(data)) {
		return size, bad
	}
	body := data[20:]
	switch string(data[12:16]) {
	case "VP8 ": // a key frame: three bytes, a start code, two sizes of 14 bits
		if body[0]&1 != 0 || body[3] != 0x9d || body[4] != 0x01 || body[5] != 0x2a {
			return size, bad
		}
		size.Width, size.Height = int(binary.LittleEndian.Uint16(body[6:])&0x3fff), int(binary.LittleEndian.Uint16(body[8:])&0x3fff)
	case "VP8L":
		if body[0] != 0x2f {
			return size, bad
		}
		bits := binary.LittleEndian.Uint32(body[1:])
		size.Width, size.Height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case "VP8X":
		side := func(b []byte) int { return 1 + (int(b[0]) | int(b[1])<<8 | int(b[2])<<16) }
		size.Width, size.Height = side(body[4:]), side(body[7:])
	default:
		return size, bad
	}
	return size, nil
}
