package main

import (
	"context"
	"io"
	"os"
)

func main() {
	ctx, stop := notifySignals(context.Background())
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process: it never exits, reads and writes only what
// it is given (and the APOGRAPH_ environment), and returns the exit code. args
// is os.Args, with the program's name first. A ctx that notifySignals cancelled
// ends the command early and decides the exit code, see [exitCodeFor].
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return int(newFrame(commands(), stdin, stdout, stderr).run(ctx, args))
}
