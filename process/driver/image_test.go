package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// images returns a small image of each type.
func images(t testing.TB, side int) map[string][]byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, side, 2), color.Palette{color.Black, color.White})
	var p, j, g bytes.Buffer
	if err := errors.Join(png.Encode(&p, m), jpeg.Encode(&j, m, nil), gif.Encode(&g, m, nil)); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"image/png": p.Bytes(), "image/jpeg": j.Bytes(), "image/gif": g.Bytes(), "image/webp": webp(side, 2)}
}

// webp returns the beginning of an extended WebP file, with a chunk without pixels.
func webp(width, height int) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00")
	for _, n := range []int{width - 1, height - 1} {
		b = append(b, byte(n), byte(n>>8), byte(n>>16))
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

func TestImageType(t *testing.T) {
	for want, data := range images(t, 3) {
		if got, err := ImageType(data); got != want || err != nil {
			t.Errorf("an image of the type %s has the type %q, %v", want, got, err)
		}
		if got, err := ImageType(data[:10]); !errors.Is(err, ErrNotImage) {
			t.Errorf("the beginning of %s has the type %q, %v", want, got, err)
		}
	}
	lossy := append([]byte("RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00"), 0x10, 0, 0, 0x9d, 1, 0x2a, 3, 0, 2, 0)
	lossless := append([]byte("RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00"), 0x2f, 2, 0x40, 0, 0, 0, 0, 0, 0, 0)
	for _, data := range [][]byte{lossy, lossless} {
		if got, err := ImageType(data); got != "image/webp" || err != nil {
			t.Errorf("%q has the type %q, %v", data[12:16], got, err)
		}
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "SVG": []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		"HTML": []byte("<!doctype html><img>"), "BMP": []byte("BM\x00\x00\x00\x00"),
		"a WebP of another length":   append(webp(3, 2), 0),
		"a WebP without a key frame": append(slices.Clone(lossy[:20]), 0x11, 0, 0, 0x9d, 1, 0x2a, 3, 0, 2, 0),
	} {
		if got, err := ImageType(data); !errors.Is(err, ErrNotImage) {
			t.Errorf("%s has the type %q, %v", name, got, err)
		}
	}
	for kind, data := range images(t, ImageSideMax+1) {
		if _, err := ImageType(data); err == nil || !strings.Contains(err.Error(), "8001 by 2 pixels") {
			t.Errorf("%s of 8001 pixels: %v", kind, err)
		}
	}
	if got, err := ImageType([]byte("GIF89a<script>alert(1)</script>")); err == nil {
		t.Errorf("an HTML page after a magic number has the type %s", got)
	}
	if _, err := ImageType(make([]byte, ImageBytesMax+1)); err == nil || !strings.Contains(err.Error(), "3 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

// FuzzImageType checks that a browser detects the same type for every accepted image.
func FuzzImageType(f *testing.F) {
	for _, data := range images(f, 3) {
		f.Add(data)
	}
	f.Add([]byte("<svg></svg>"))
	f.Add([]byte("RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\x02\x40"))
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, err := ImageType(data)
		if err != nil {
			if kind != "" {
				t.Errorf("%q with the error %v", kind, err)
			}
			return
		}
		if sniffed := http.DetectContentType(data); sniffed != kind {
			t.Errorf("%q has the type %s, but a browser detects %s", data, kind, sniffed)
		}
	})
}
