// Package javaprops reads Java's .properties files as Kafka's programs read
// them, and keeps where everything stands.
//
// # What it guarantees
//
// Keys and values are those of java.util.Properties.load, character by
// character: continued lines, escapes, separators, the order of duplicates. This
// is compared with Java itself on generated files (testdata). Every character of
// a value is traced back to its place in the file, so that a finding about the
// third pattern of a list can point at it.
//
// # Encoding
//
// Kafka loads its files from a stream of bytes (Utils.loadProps), which Java
// takes as ISO-8859-1: the UTF-8 letter ä becomes two letters. [Parse] does the
// same, and [Entry.Meant] says what the author will have meant. Kafka's
// FileConfigProvider reads UTF-8; [ParseUTF8] is for that.
//
// # What it does not
//
// It does not expand anything by itself: ${file:...} is text. [Providers] does
// that, for the providers that a file names, in one pass as Kafka does.
//
// A Go string cannot hold half of a surrogate pair, which \uD800 alone makes in
// Java: it becomes U+FFFD.
package javaprops
