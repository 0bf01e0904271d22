package file

import "bytes"

// Capped keeps the beginning of what a program prints, and takes the rest without keeping it, so that the program can
// end. It embeds no buffer: io.Copy would fill that past the limit through its method ReadFrom.
type Capped struct {
	Max int  // bytes that are kept
	Cut bool // there was more

	kept bytes.Buffer
}

// Write keeps what fits.
func (c *Capped) Write(b []byte) (int, error) {
	fits := b[:min(len(b), max(0, c.Max-c.kept.Len()))]
	c.Cut = c.Cut || len(fits) < len(b)
	c.kept.Write(fits)
	return len(b), nil
}

// Bytes returns what was kept.
func (c *Capped) Bytes() []byte { return c.kept.Bytes() }

// String returns what was kept.
func (c *Capped) String() string { return c.kept.String() }
