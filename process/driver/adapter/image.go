package adapter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// imagesBytesMax is the size of all images of one prompt: with their encoding they fit into the queue of a program's input.
const imagesBytesMax = 16 << 20

// Image is an image of a prompt.
type Image struct {
	Type string // media type, such as image/png
	Data []byte
}

// ReadImages reads the images of a prompt. One that cannot be given to the program is reported, and left out: the
// prompt has its path.
func ReadImages(out *speech.Writer, paths []string) (all []Image) {
	size := 0
	for _, path := range paths {
		one, err := readImage(path)
		if err == nil && size+len(one.Data) > imagesBytesMax {
			err = fmt.Errorf("the images of the prompt are larger than %d MiB", imagesBytesMax>>20)
		}
		if err != nil {
			out.Tell(driver.Fact{
				Kind: driver.Faulted,
				Text: fmt.Sprintf("the program gets only the path of the image %s: %v", OneLine(filepath.Base(path)), err),
			})
			continue
		}
		size += len(one.Data)
		all = append(all, one)
	}
	return all
}

func readImage(path string) (one Image, err error) {
	file, err := os.Open(path)
	if err != nil {
		return one, err
	}
	defer file.Close()
	if one.Data, err = io.ReadAll(io.LimitReader(file, driver.ImageBytesMax+1)); err != nil {
		return one, err
	}
	one.Type, err = driver.ImageType(one.Data)
	return one, err
}
