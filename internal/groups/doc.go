// Package groups reads the committed offsets of consumer groups on one cluster
// and commits offsets for groups on another, as somebody outside of the groups.
//
//   - [Cluster.List], [Cluster.Groups]: what groups there are, what one is, and
//     whether it has members.
//   - [Cluster.Offsets], [Cluster.DecidedOffsets]: what it has committed.
//   - [Decide]: whether an offset may be committed, and why not.
//   - [Cluster.Commit]: committing, and reading back what is there then.
//
// # What it guarantees
//
// A group is never taken backwards behind its own back. An offset is committed
// only where the group has still committed what it had when the commit was
// decided. A group that has members is refused by its coordinator, which is a
// reason to skip it and not a fault. A commit whose outcome is not known is
// never sent again blindly: what the group has then decides.
//
// Of several groups each has an answer or an error of its own. A broker that is
// gone takes only the groups away that it coordinates.
//
// # What it does not
//
// Between the last look at a group and the commit a member may join, commit,
// and leave again. Kafka has no conditional commit; the time between the two is
// one round trip to the group's coordinator.
//
// The package translates nothing. Of the books it asks only where a source's log parts
// from them.
package groups
