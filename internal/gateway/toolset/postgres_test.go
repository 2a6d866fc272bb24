package toolset

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// server is a PostgreSQL of the tests' own, in a folder of its own, on loopback with TLS and passwords.
type server struct {
	folder, binaries string
	port             int
	process          *exec.Cmd
	exited           chan struct{}
	attributes       *syscall.SysProcAttr
}

var (
	theServer   *server
	errServer   error
	startServer sync.Once
)

func TestMain(m *testing.M) {
	code := m.Run()
	if theServer != nil {
		theServer.stop()
	}
	os.Exit(code)
}

// postgres is the running server; without its binaries the test is skipped, unless everything is demanded.
func postgres(tb testing.TB) *server {
	tb.Helper()
	startServer.Do(func() { theServer, errServer = newServer() })
	if errServer != nil {
		if theServer == nil && os.Getenv("DEMAND_ALL") != "1" {
			tb.Skipf("no PostgreSQL here (Debian's package postgresql has it): %v", errServer)
		}
		tb.Fatal(errServer)
	}
	return theServer
}

func newServer() (*server, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, lookErr := exec.LookPath("initdb"); lookErr == nil {
		found = append(found, path)
	}
	if len(found) == 0 || err != nil {
		return nil, fmt.Errorf("initdb is not found: %w", err)
	}
	s := &server{binaries: filepath.Dir(found[len(found)-1]), exited: make(chan struct{})}
	if s.folder, err = os.MkdirTemp("", "toolset-postgres-"); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		return s, err
	}
	return s, s.start()
}

// prepare makes a database as a user who is not root, whom PostgreSQL refuses.
func (s *server) prepare() error {
	if os.Getuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			return err
		}
		s.attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(s.folder, int(uid), int(gid)); err != nil {
			return err
		}
	}
	if err := os.WriteFile(s.path("password"), []byte("admin"), 0o644); err != nil {
		return err
	}
	if out, err := s.command("initdb", "-D", s.path("data"), "-U", "admin", "--pwfile", s.path("password"), "-A", "scram-sha-256",
		"-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	if err := s.demandCertificate(); err != nil {
		return err
	}
	return s.certificate()
}

func (s *server) path(name string) string { return filepath.Join(s.folder, name) }

func (s *server) command(name string, arguments ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.binaries, name), arguments...)
	c.Dir, c.SysProcAttr = s.folder, s.attributes
	return c
}

// certificate makes one for "localhost" alone, which is its own CA.
func (s *server) certificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tests"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	client, clientKey, err := issue(template, key)
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"client.crt": client, "client.key": clientKey,
		"server.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"server.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
	for name, content := range files {
		if err := os.WriteFile(s.path(name), content, 0o600); err != nil {
			return err
		}
		if s.attributes != nil {
			if err := os.Chown(s.path(name), int(s.attributes.Credential.Uid), int(s.attributes.Credential.Gid)); err != nil {
				return err
			}
		}
	}
	return nil
}

// certified is the role that logs in by a certificate alone.
const certified = "certified"

// issue makes a certificate for it, and its key.
func issue(ca *x509.Certificate, caKey *ecdsa.PrivateKey) (certificate, key []byte, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: certified}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, &own.PublicKey, caKey)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

// demandCertificate lets that role in by its certificate alone.
func (s *server) demandCertificate() error {
	rules, err := os.ReadFile(s.path("data/pg_hba.conf"))
	if err != nil {
		return err
	}
	return os.WriteFile(s.path("data/pg_hba.conf"), append([]byte("hostssl all "+certified+" all cert\n"), rules...), 0o600)
}

func (s *server) start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return errors.New("the listener has no port")
	}
	s.port = address.Port
	if err := listener.Close(); err != nil {
		return err
	}
	s.process = s.command("postgres", "-D", s.path("data"), "-p", strconv.Itoa(s.port), "-k", "", "-c", "listen_addresses=localhost", "-F",
		"-c", "ssl=on", "-c", "ssl_cert_file="+s.path("server.crt"), "-c", "ssl_key_file="+s.path("server.key"),
		"-c", "ssl_ca_file="+s.path("server.crt"), "-c", "shared_buffers=16MB",
		"-c", "lc_messages=C", "-c", "DateStyle=SQL,DMY", "-c", "TimeZone=Asia/Tokyo")
	said, err := s.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	var tail strings.Builder
	go func() {
		defer close(s.exited)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if strings.Contains(lines.Text(), "ready to accept connections") {
				ready <- true
			} else if len(ready) == 0 {
				tail.WriteString(lines.Text() + "\n")
			}
		}
		_ = s.process.Wait()
		close(ready)
	}()
	select {
	case up := <-ready:
		if up {
			return nil
		}
		return fmt.Errorf("postgres ended: %s", tail.String())
	case <-time.After(time.Minute):
		return fmt.Errorf("postgres did not become ready")
	}
}

func (s *server) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(syscall.SIGINT)
		<-s.exited
	}
	_ = os.RemoveAll(s.folder)
}

// admin runs SQL as the superuser, and returns the first value.
func (s *server) admin(tb testing.TB, sql string) string {
	tb.Helper()
	ctx := context.Background()
	c, err := pgconn.Connect(ctx, fmt.Sprintf("host=localhost port=%d user=admin password=admin dbname=postgres sslmode=disable", s.port))
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close(ctx)
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	if last := results[len(results)-1]; len(last.Rows) > 0 {
		return string(last.Rows[0][0])
	}
	return ""
}

// otherCA is a certificate that nobody bears.
func otherCA(t *testing.T) string {
	t.Helper()
	s := &server{folder: t.TempDir()}
	if err := s.certificate(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(s.path("server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
