package guest

import (
	"fmt"
	"os"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/pty"
)

// startOnTerminal starts the process on a terminal of its own, which controls it.
func (c *command) startOnTerminal(p *process, size job.WindowSize, resized <-chan job.WindowSize, children *reaper) error {
	master, slave, err := pty.Open()
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer slave.Close()
	if err := pty.Resize(master, size.Rows, size.Columns); err != nil {
		return fmt.Errorf("terminal: size: %w", err)
	}
	p.files, p.tty = []*os.File{slave, slave, slave}, true
	if c.pid, c.ended, err = children.start(p); err != nil {
		return err
	}
	c.stdin, c.stdout = master, &output{r: master, grace: 300 * time.Millisecond}
	go func() {
		for size := range resized {
			pty.Resize(master, size.Rows, size.Columns)
		}
	}()
	return nil
}
