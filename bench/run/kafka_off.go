//go:build !kafka

package main

import (
	"context"
	"errors"
)

var errNoKafka = errors.New("real brokers need a build with -tags kafka")

func kafkaCommand(context.Context, []string) error { return errNoKafka }
func tableCommand(context.Context, []string) error { return errNoKafka }
