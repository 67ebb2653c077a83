//go:build !kafka

package main

import (
	"context"
	"errors"
)

func kafkaCommand(context.Context, []string) error {
	return errors.New("real brokers need a build with -tags kafka")
}
