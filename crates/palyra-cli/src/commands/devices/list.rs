//! `palyra devices list`.

use palyra_client::Client;
use palyra_client::api::{DeviceView, ListDevicesResponse};
use palyra_client::command::{Command, NoParams};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;
use crate::render::text::{instant, shortened};

pub(super) async fn execute(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListDevicesResponse = client.execute(&Command::DeviceList(NoParams {})).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.devices)?;
    } else if page.devices.is_empty() {
        console.remark("no devices with a certificate");
    } else {
        let rows: Vec<_> = page.devices.iter().map(row).collect();
        let lines = table::lines(["DEVICE", "ROLE", "FOR", "ISSUED (UTC)", "STATE"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn row(device: &DeviceView) -> [String; 5] {
    let newest = device.certificates.first();
    let state = match newest {
        Some(certificate) => match certificate.revoked_at {
            Some(at) => format!("revoked {}", instant(at)),
            None => format!("until {}", instant(certificate.expires_at)),
        },
        None => "no certificate".to_owned(),
    };
    [
        device.device_id.to_string(),
        device.role.to_string(),
        shortened(&device.principal, 24),
        newest.map_or_else(|| "-".to_owned(), |certificate| instant(certificate.issued_at)),
        state,
    ]
}
