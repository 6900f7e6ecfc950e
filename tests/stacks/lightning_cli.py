"""A regression whose options LightningCLI makes out of the arguments of its model and of its data."""
import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(LightningModule):
    def __init__(self, lr: float = 0.01, weight_decay: float = 0.01, warmup_steps: int = 2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def training_step(self, batch, _index):
        loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / self.hparams.warmup_steps))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class Numbers(LightningDataModule):
    def __init__(self, batch_size: int = 16):
        super().__init__()
        self.save_hyperparameters()

    def train_dataloader(self):
        inputs = torch.randn(512, 8, generator=torch.Generator().manual_seed(1))
        return DataLoader(TensorDataset(inputs, inputs[:, :1] * inputs[:, 1:2] + inputs[:, 2:3]), self.hparams.batch_size, shuffle=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    LightningCLI(Regression, Numbers, seed_everything_default=0, trainer_defaults={"enable_model_summary": False, "enable_progress_bar": False})
