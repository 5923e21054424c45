//! A connection that breaks.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Listens on loopback and hands bytes on to `target`, but cuts each connection after its
/// budget of bytes towards the target is spent.
#[derive(Debug)]
pub struct CuttingProxy {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
}

impl CuttingProxy {
    /// The connection number N (from 0) is cut after `budget(N)` bytes; `None` never.
    ///
    /// # Panics
    /// If there is no port to listen on.
    #[must_use]
    pub fn start(
        target: SocketAddr,
        budget: impl Fn(usize) -> Option<usize> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let cuts = Arc::new(AtomicUsize::new(0));
        let counter = cuts.clone();
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let Ok(server) = TcpStream::connect(target) else {
                    continue;
                };
                join(client, server, budget(number), counter.clone());
            }
        });
        Self { address, cuts }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections were cut.
    #[must_use]
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }
}

fn join(client: TcpStream, server: TcpStream, budget: Option<usize>, cuts: Arc<AtomicUsize>) {
    let (Ok(client_out), Ok(server_out)) = (client.try_clone(), server.try_clone()) else {
        return;
    };
    std::thread::spawn(move || pump(server, client_out, None));
    std::thread::spawn(move || {
        if pump(client, server_out, budget) {
            cuts.fetch_add(1, Ordering::Relaxed);
        }
    });
}

/// Hands bytes on until the end or until `budget` is spent; `true` if it was spent.
fn pump(mut from: TcpStream, mut to: TcpStream, budget: Option<usize>) -> bool {
    let mut left = budget.unwrap_or(usize::MAX);
    let mut bytes = [0; 8192];
    while left > 0 {
        let most = left.min(bytes.len());
        let Ok(n @ 1..) = from.read(&mut bytes[..most]) else {
            break;
        };
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
        left -= n;
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
    left == 0
}
