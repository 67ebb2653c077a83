// Package lint tells what in a configuration file does not do what its author
// thinks.
//
// [Check] looks at the file alone: how Java reads it, which keys MirrorMaker 2
// knows and at which level, what the values come to, and which flows there are.
// [Report.CheckStores] reads the key and trust stores that it names.
// [Report.CheckClusters] looks at what the clusters of the flows say.
// [Report.Explain] says for one topic by which rule of which line it is copied, or
// is not. All but CheckStores are pure: they read no file but the one that they are
// given, and reach no cluster; package probe asks the clusters.
//
// # What a finding is
//
// A [Finding] stands at a place of the file and has a code. A code never
// changes its meaning, and one that is dropped is not given again. [Codes]
// is the table of them, from which docs/lint.md is made. Whether a finding is
// an error, a warning or a notice is a matter of its code:
//
//   - an error is what apograph refuses: a run ends before anything is
//     written, or, of what clusters say, comes to no good end;
//   - a warning is what works, and most likely not as it was meant;
//   - a notice is what is good to know. It is no reason for a script to stop.
//
// What a value would be refused for is an error only if a flow that is enabled
// has it. One mistake has one finding. No finding holds the value of a secret, or
// one that a config provider gave.
package lint
