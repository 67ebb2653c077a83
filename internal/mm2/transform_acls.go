package mm2

// An ACL is one access control entry about a resource, in the words of Kafka's
// tools: TOPIC, LITERAL, User:alice, *, READ, ALLOW.
type ACL struct {
	Resource, Pattern, Name string
	Principal, Host         string
	Operation, Permission   string
}

// TargetACL returns what one entry of the source becomes on the target; ok is
// false if it stays behind. Only those about single topics that are copied go
// over, with READ for ALL and without WRITE, so that the copy is written by its
// copier alone (MirrorSourceConnector.shouldReplicateAcl, targetAclBinding).
func (r TopicRules) TargetACL(a ACL) (ACL, bool) {
	if a.Resource != "TOPIC" || a.Pattern != "LITERAL" {
		return ACL{}, false
	}
	if _, copied := r.Match(a.Name); !copied || a.Permission == "ALLOW" && a.Operation == "WRITE" {
		return ACL{}, false
	}
	a.Name = r.Remote(a.Name)
	if a.Permission == "ALLOW" && a.Operation == "ALL" {
		a.Operation = "READ"
	}
	return a, true
}
