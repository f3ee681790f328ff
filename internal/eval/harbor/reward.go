package harbor

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/toryo-dev/toryo/internal/sandbox"
	"github.com/toryo-dev/toryo/internal/task"
)

// maxReward is how long a file with a reward may be.
const maxReward = 64 << 10

// rewards are the two files in which tests may leave a reward.
type rewards struct {
	text, json []byte // nil if there is none
	problem    string // why one of them cannot be read
}

// readRewards reads the files from a container that has ended.
func readRewards(ctx context.Context, files sandbox.Files) (read rewards, err error) {
	for name, to := range map[string]*[]byte{"reward.txt": &read.text, "reward.json": &read.json} {
		archive, err := files.Archive(ctx, rewardPath+"/"+name)
		if task.CodeOf(err) == task.NotFound {
			continue
		}
		if err != nil {
			return rewards{}, err
		}
		content, problem := onlyFile(archive)
		_ = archive.Close() // it was only read
		if problem != "" {
			read.problem = name + " " + problem
		}
		*to = content
	}
	return read, nil
}

// onlyFile is the file in an archive, which has to be a short one and no link.
func onlyFile(from io.Reader) (content []byte, problem string) {
	archive := tar.NewReader(from)
	header, err := archive.Next()
	if err != nil {
		return nil, "cannot be read"
	}
	if header.Typeflag != tar.TypeReg || header.Size > maxReward {
		return nil, fmt.Sprintf("is no file, or has more than %d bytes", maxReward)
	}
	content, err = io.ReadAll(io.LimitReader(archive, maxReward))
	if err != nil {
		return nil, "cannot be read"
	}
	return append([]byte{}, content...), ""
}

// reward is the number that the files say, or why they say none. If both are there, they have to
// say the same.
func (r rewards) reward() (value float64, problem string) {
	var values []float64
	if r.problem != "" {
		return 0, r.problem
	}
	if r.text != nil {
		value, err := strconv.ParseFloat(strings.TrimSpace(string(r.text)), 64)
		if err != nil {
			return 0, "reward.txt is no number"
		}
		values = append(values, value)
	}
	if r.json != nil {
		value, ok := jsonReward(r.json)
		if !ok {
			return 0, "reward.json has no number as its reward"
		}
		values = append(values, value)
	}
	switch {
	case len(values) == 0:
		return 0, "the tests left no reward in " + rewardPath
	case len(values) == 2 && values[0] != values[1]:
		return 0, "reward.txt and reward.json say different things"
	case math.IsNaN(values[0]) || values[0] < 0 || values[0] > 1:
		return 0, fmt.Sprintf("the reward is %v, and not from 0 to 1", values[0])
	}
	return values[0], ""
}

// jsonReward is the number named reward, or the only one that there is.
func jsonReward(data []byte) (float64, bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return 0, false
	}
	named, is := all["reward"]
	if !is && len(all) == 1 {
		for _, one := range all {
			named = one
		}
	}
	var value *float64
	if named == nil || json.Unmarshal(named, &value) != nil || value == nil {
		return 0, false
	}
	return *value, true
}
