package main

import "context"

func fakesCommand(context.Context, []string) error  { return nil }
func sourceCommand(context.Context, []string) error { return nil }
func targetCommand(context.Context, []string) error { return nil }
