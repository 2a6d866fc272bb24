package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// petstore is a real HTTP API in a pod, which tells what it was asked.
type petstore struct {
	*fixture

	pod  client.ObjectKey
	host string
	// where is its address from here.
	where string
}

// petstore runs the API; with tokens it lets in nobody else. They are in the Secret <name>-tokens, of one line each in the key TOKENS.
func (f *fixture) petstore(name string, tokens ...string) *petstore {
	f.t.Helper()
	pod := echoPod(name, "--document=/data/petstore.json")
	pod.Spec.Containers[0].Image = imageOf("petstore")
	if len(tokens) > 0 {
		secret := name + "-tokens"
		f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret}, StringData: map[string]string{"TOKENS": strings.Join(tokens, "\n")}})
		mountSecret(pod, secret, "/tokens")
		pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "--token-file=/tokens/TOKENS")
	}
	pod.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/openapi.json", Port: intstr.FromInt32(8080)},
	}}
	f.create(serviceOf(name, 8080))
	p := &petstore{fixture: f, pod: f.echo(pod), host: fmt.Sprintf("%s.%s.svc.cluster.local", name, f.namespace)}
	p.where = "http://" + f.forward(p.pod, 8080)
	return p
}

// endpoint is its address inside the cluster.
func (p *petstore) endpoint() string { return "http://" + p.host + ":8080" }

// asked is a request that an API was sent. Credentials are digests.
type asked struct {
	Method    string      `json:"method"`
	Path      string      `json:"path"`
	Body      string      `json:"body"`
	Query     url.Values  `json:"query"`
	Headers   http.Header `json:"headers"`
	Status    int         `json:"status"`
	Cancelled bool        `json:"cancelled"`
}

// requests returns what it was asked at paths with this beginning, oldest first.
func (p *petstore) requests(path string) []asked {
	p.t.Helper()
	var told struct {
		Requests []asked `json:"requests"`
	}
	if err := json.Unmarshal([]byte(p.get("/requests")), &told); err != nil {
		p.t.Fatal(err)
	}
	var matching []asked
	for _, r := range told.Requests {
		if strings.HasPrefix(r.Path, path) {
			matching = append(matching, r)
		}
	}
	return matching
}

// get reads a page of it from here. One connection that is lost ends a forwarding: then it is forwarded anew, once.
func (p *petstore) get(path string) string {
	p.t.Helper()
	body, err := page(p.t.Context(), p.where+path)
	if err == nil {
		return body
	}
	p.t.Logf("it is forwarded anew: %v", err)
	p.where = "http://" + p.forward(p.pod, 8080)
	if body, err = page(p.t.Context(), p.where+path); err != nil {
		p.t.Fatal(err)
	}
	return body
}

// page reads a page that is forwarded here.
func page(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// database is a real PostgreSQL in a pod, with the database shop and the role reader.
type database struct {
	*fixture

	pod client.ObjectKey
}

const adminPassword = "admin-of-the-test"

// database runs PostgreSQL as db, with two pets in it and a role whose password is in the key password of the Secret db-reader.
func (f *fixture) database(password string) *database {
	f.t.Helper()
	const name = "db"
	f.create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-reader"}, StringData: map[string]string{"password": password}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-setup"}, StringData: map[string]string{"setup.sql": fmt.Sprintf(`
			CREATE TABLE pets (id integer PRIMARY KEY, name text NOT NULL, born date);
			INSERT INTO pets VALUES (1, 'Rex', '2020-01-02'), (2, 'Tom', NULL);
			CREATE ROLE reader LOGIN PASSWORD '%s';
			GRANT SELECT, INSERT ON pets TO reader;`, password)}},
		serviceOf(name, 5432),
	)
	pod := echoPod(name)
	c := &pod.Spec.Containers[0]
	c.Image, c.Args = imageOf("postgres"), nil
	c.SecurityContext.ReadOnlyRootFilesystem = new(true)
	c.Env = []corev1.EnvVar{{Name: "POSTGRES_PASSWORD", Value: adminPassword}, {Name: "POSTGRES_DB", Value: "shop"}}
	c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(5432)}}}
	for volume, path := range map[string]string{"data": "/var/lib/postgresql", "tmp": "/tmp"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
	mountSecret(pod, name+"-setup", "/docker-entrypoint-initdb.d")
	return &database{fixture: f, pod: f.echo(pod)}
}

// endpoint is its address inside the cluster.
func (d *database) endpoint() string {
	return fmt.Sprintf("postgres://db.%s.svc.cluster.local:5432/shop", d.namespace)
}

// execute runs SQL as the database's administrator.
func (d *database) execute(sql string) {
	d.t.Helper()
	ctx := d.t.Context()
	connection, err := pgx.Connect(ctx, fmt.Sprintf("postgres://postgres:%s@%s/shop?sslmode=disable", adminPassword, d.forward(d.pod, 5432)))
	if err != nil {
		d.t.Fatalf("connect to the database: %v", err)
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, sql); err != nil {
		d.t.Fatalf("execute %q: %v", sql, err)
	}
}

func serviceOf(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"name": name}, Ports: []corev1.ServicePort{{Port: port}},
	}}
}

func mountSecret(pod *corev1.Pod, secret, path string) {
	volume := corev1.Volume{Name: secret, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
	pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: secret, MountPath: path, ReadOnly: true})
}
