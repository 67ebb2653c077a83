package javaprops

// Providers resolve variables.
type Providers struct{}
