package cel

import (
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// leads are names of fields by which an object could lead out of its namespace, into the operator or gateway, or to the node.
var leads = regexp.MustCompile(`(?i)^(.*namespaces?|.*(file|path|dir|directory|socket)|host.*|.*(privileged|procmount|capabilities|sysctls|hostport)|` +
	`volumes?|volumeMounts|volumeDevices|subPath.*|initContainers|ephemeralContainers|lifecycle|exec|httpGet|tcpSocket|grpc|nodeName|shareProcessNamespace|` +
	`serviceAccount.*|insecure.*|skip.*|ownerReferences|finalizers|template|podTemplate|clusterRole.*|proxy.*)$`)

// leadNowhere are fields with such a name that are of something else.
var leadNowhere = map[string]string{
	"spec.http.path":              "of a URL",
	"spec.openapi.include[].path": "in a document", "spec.openapi.exclude[].path": "in a document",
	"spec.auth.serviceAccounts":                                "of the own namespace, which are let in",
	"spec.runtime.podSecurity.serviceAccountName":              "refused for agents",
	"spec.runtime.podSecurity.seccompProfile":                  "of the kubelet",
	"spec.runtime.podSecurity.seccompProfile.localhostProfile": "under the folder of the kubelet's profiles",
	"spec.runtime.env[].valueFrom.fieldRef.fieldPath":          "of the pod itself",
	"spec.runtime.env[].valueFrom.fileKeyRef.path":             "refused",
}

// TestNoFieldOfAToolOrAgentLeadsElsewhere: what cannot be said needs no check, no right and no trust.
func TestNoFieldOfAToolOrAgentLeadsElsewhere(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, kind := range []string{toolKind, agentKind} {
		walk("", schemaOf(t, kind), func(path string, node *schemaNode) {
			name := path[strings.LastIndex(path, ".")+1:]
			if !strings.HasPrefix(path, "spec.") || !leads.MatchString(strings.TrimRight(name, "[]{}")) || strings.HasSuffix(name, "]") {
				return
			}
			if seen[path] = true; leadNowhere[path] == "" {
				t.Errorf("%s of %s: where does it lead? Say so here, and see that it leads nowhere", path, kind)
			}
			if node.XPreserveUnknownFields != nil && *node.XPreserveUnknownFields {
				t.Errorf("%s of %s takes anything", path, kind)
			}
		})
	}
	for path := range leadNowhere {
		if !seen[path] {
			t.Errorf("%s is no field any more", path)
		}
	}
	for _, name := range []string{"hostPath", "tokenFile", "caFile", "namespace", "insecureSkipVerify", "serviceAccountName", "podTemplate"} {
		if !leads.MatchString(name) {
			t.Errorf("a field %s would not be found", name)
		}
	}
}

// TestWhatWouldLeadElsewhereIsNoField asks for it all the same: the API server does not know it, and refuses or drops it.
func TestWhatWouldLeadElsewhereIsNoField(t *testing.T) {
	t.Parallel()
	for minimal, changes := range map[string][]string{
		minimalAgent: {
			"spec: {tools: [{name: a, namespace: kube-system}]}",
			"spec: {servers: [{name: a, namespace: kube-system}]}",
			"spec: {serverRef: {name: a, namespace: kube-system}, tools: null}",
			"spec: {auth: {type: Tokens, serviceAccounts: [{name: a, namespace: kube-system}]}}",
			gateway("tls: {secretName: a, namespace: kube-system}"),
			gateway("image: evil"),
			gateway("env: [{name: LD_PRELOAD, value: /tmp/a.so}]"),
			gateway("serviceAccountName: admin"),
			gateway("podTemplate: {spec: {hostNetwork: true}}"),
			workload("hostNetwork: true"),
			workload("hostPID: true"),
			workload("volumes: [{name: a, hostPath: {path: /}}]"),
			workload("volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a}}]}}]"),
			workload("securityContext: {privileged: true}"),
			workload("podSecurity: {capabilities: {add: [SYS_ADMIN]}}"),
			workload("podSecurity: {procMount: Unmasked}"),
			workload("podSecurity: {allowPrivilegeEscalation: true}"),
			workload("probes: {liveness: {httpGet: {host: 169.254.169.254}}}"),
			workload("lifecycle: {preStop: {exec: {command: [sh]}}}"),
			workload("initContainers: [{name: a, image: b}]"),
			workload("envFrom: [{secretRef: {name: a}}]"),
		},
		minimalTool: {
			"spec: {caFile: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}",
			"spec: {auth: {type: Bearer, tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}}",
			"spec: {auth: {type: Bearer, secretRef: {name: a, namespace: kube-system}}}",
			"spec: {caBundle: {secretRef: {name: a, key: b, namespace: kube-system}}}",
			"spec: {schema: {configMapRef: {name: a, key: b, namespace: kube-system}}}",
			"spec: {type: openapi, openapi: {document: {file: /etc/passwd}}}",
			"spec: {insecureSkipVerify: true}",
			"spec: {proxyURL: 'http://evil.example'}",
			"spec: {http: {command: [sh, -c, id]}}",
			postgres("statement: SELECT 1, user: a, passwordFile: /etc/passwd"),
			remote("command: [sh, -c, id]"),
		},
	} {
		for _, change := range changes {
			t.Run(change, func(t *testing.T) {
				t.Parallel()
				_, err := submitTo(t, minimal, change)
				if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "unknown field") {
					t.Errorf("answered with %v, want a bad request because of an unknown field", err)
				}
			})
		}
	}
}

// TestANameIsANameAndNoPathToAnotherNamespace, wherever an object is referred to.
func TestANameIsANameAndNoPathToAnotherNamespace(t *testing.T) {
	t.Parallel()
	names := []string{"kube-system/a", "../a", "a/../b", "a%2fb", "a b", "a\\n", "a:b", "A", "*", "a;b", "-a", ".", "..", "a..b", "${A}", "{{a}}", "ü"}
	for _, name := range names {
		quoted := `"` + name + `"`
		for change, minimal := range map[string]string{
			"spec: {tools: [{name: " + quoted + "}]}":                                                    minimalAgent,
			"spec: {servers: [{name: " + quoted + "}]}":                                                  minimalAgent,
			"spec: {serverRef: {name: " + quoted + "}, tools: null}":                                     minimalAgent,
			"spec: {auth: {type: Tokens, serviceAccounts: [{name: " + quoted + "}]}}":                    minimalAgent,
			gateway("tls: {secretName: " + quoted + "}"):                                                 minimalAgent,
			"spec: {auth: {type: Bearer, secretRef: {name: " + quoted + "}}}":                            minimalTool,
			"spec: {caBundle: {secretRef: {name: " + quoted + ", key: b}}}":                              minimalTool,
			"spec: {schema: {configMapRef: {name: " + quoted + ", key: b}}}":                             minimalTool,
			"spec: {type: openapi, openapi: {document: {configMapRef: {name: " + quoted + ", key: b}}}}": minimalTool,
		} {
			_, err := submitTo(t, minimal, change)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "name of a") {
				t.Errorf("%s is answered with %v", change, err)
			}
		}
	}
}
